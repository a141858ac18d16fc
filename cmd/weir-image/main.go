// Command weir-image writes the agent's container image without a container
// engine: an OCI layout with the program, the plugins that agent.toml names,
// its prompts and agent.lock. The same inputs give the same bytes.
//
//	weir-image --weir bin/image/weir --out bin/image/oci    the layout
//	weir-image --weir bin/image/weir --root DIR             its files alone, for the Dockerfile
//
// The last line on stdout is the layout's total, `<n> bytes`.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Bounds of the image, in bytes. The runtimes that serve the same contract have
// images of 71 MB and 2.01 GB.
const (
	maxLayout   = 22_000_000
	maxUnpacked = 65_000_000
)

// settings are the command line.
type settings struct {
	weir     string
	config   string
	version  string // the path of .image-version
	commit   string
	name     string
	caBundle string
	out      string
	root     string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("weir-image", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.weir, "weir", "bin/image/weir", "the program, a static binary for Linux")
	f.StringVar(&s.config, "config", "agent.toml", "the agent's configuration; plugins and prompts that it names go in")
	f.StringVar(&s.version, "version-file", ".image-version", "one line of semver, for tag and labels")
	f.StringVar(&s.commit, "commit", "unknown", "the commit, for labels and /version")
	f.StringVar(&s.name, "name", "support-tickets-agent", "the image's name")
	f.StringVar(&s.caBundle, "ca-bundle", "/etc/ssl/certs/ca-certificates.crt", "the certificates that the agent shall trust")
	f.StringVar(&s.out, "out", "", "write an OCI layout to this folder")
	f.StringVar(&s.root, "root", "", "write the image's files to this folder")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 || (s.out == "") == (s.root == "") {
		fmt.Fprintln(stderr, "weir-image: expected no arguments and one of --out and --root")
		return s, errors.New("usage")
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if err := build(s, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "weir-image: %v\n", err)
		return 1
	}
	return 0
}

func build(s settings, stdout, stderr io.Writer) error {
	c, err := collect(s)
	if err != nil {
		return err
	}
	if c.certificates == "" {
		fmt.Fprintf(stderr, "weir-image: there is no %s here, so the image trusts no certificate: https endpoints will be refused\n", s.caBundle)
	} else {
		fmt.Fprintf(stdout, "certificates of this machine, %s\n", s.caBundle)
	}
	if s.root != "" {
		return c.write(s.root)
	}
	size, err := writeLayout(s.out, c)
	if err != nil {
		return err
	}
	unpacked := c.size()
	fmt.Fprintf(stdout, "%s:%s, linux/%s, %s\nunpacked %d bytes of at most %d\n%d bytes\n",
		s.name, c.version, c.arch, s.out, unpacked, maxUnpacked, size)
	if unpacked > maxUnpacked {
		return fmt.Errorf("expected at most %d bytes unpacked, got %d", maxUnpacked, unpacked)
	}
	if size > maxLayout {
		return fmt.Errorf("expected a layout of at most %d bytes, got %d", maxLayout, size)
	}
	return nil
}
