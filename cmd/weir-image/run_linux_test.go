package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"

	"weir/host/config"
)

// Variables that make this test's binary start what the image starts, in the
// image's root. They begin with WEIR_, so weir-demo hands them on.
const (
	rootVariable    = "WEIR_IMAGE_ROOT"
	argsVariable    = "WEIR_IMAGE_ARGS"
	envVariable     = "WEIR_IMAGE_ENV"
	volumesVariable = "WEIR_IMAGE_VOLUMES"
)

// mayNot is the exit code where this system does not let us enter a root.
const mayNot = 77

// The image does what the product does: weir-demo has its conversations with
// the program started from the unpacked layout, as user 1001, in a root that
// holds nothing else and cannot be written to. The demo's agent.toml takes the
// place of the image's, as a mounted one would.
func TestRunsInACleanRoot(t *testing.T) {
	dir := folder(t)
	out, root := filepath.Join(t.TempDir(), "oci"), filepath.Join(t.TempDir(), "root")
	if code, _, stderr := image(t, dir, binary(t, "weir"), "--out", out); code != 0 {
		t.Fatal(stderr)
	}
	img := open(t, out)
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Config.User != "1001:1001" {
		t.Fatalf("user %q", file.Config.User)
	}
	rc := mutate.Extract(img)
	defer rc.Close()
	volumes := ""
	for v := range file.Config.Volumes {
		volumes += v + "\n"
	}
	unpack(t, tar.NewReader(rc), root)
	// t.TempDir is open to its owner only, and user 1001 is somebody else.
	for d := root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t, "weir-demo"), "--verbose", "--weir", self, "--config", filepath.Join(dir, config.DefaultPath), "--address", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), rootVariable+"="+root, argsVariable+"="+strings.Join(append(file.Config.Entrypoint, file.Config.Cmd...), "\n"),
		envVariable+"="+strings.Join(file.Config.Env, "\n"), volumesVariable+"="+volumes)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if strings.Contains(stderr.String(), notAllowed) {
		t.Skip("this system does not let a process enter another root")
	}
	if err != nil || !strings.Contains(stdout.String(), "Every conversation went as it should.") {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	if !strings.Contains(stderr.String(), "entered as user 1001, the root cannot be written") {
		t.Errorf("it ran elsewhere:\n%s", &stderr)
	}
}

const notAllowed = "not allowed to enter"

func unpack(t *testing.T, r *tar.Reader, root string) {
	t.Helper()
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		e := entry{name: h.Name, mode: h.FileInfo().Mode(), owner: h.Uid}
		if e.data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if err := e.write(filepath.Join(root, filepath.FromSlash(h.Name))); err != nil {
			t.Fatal(err)
		}
	}
}

// enter becomes the image's program. Root makes a mount namespace with a
// read-only root and mounts the volumes; anybody else makes a user namespace in
// which he is user 1001.
func enter(root string) {
	err := become(root)
	text, code := err.Error(), 1
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSPC) {
		text, code = notAllowed+": "+text, mayNot
	}
	fmt.Fprintln(os.Stderr, text)
	os.Exit(code)
}

func become(root string) error {
	if i := slices.Index(os.Args, "--config"); i > 0 && i+1 < len(os.Args) {
		text, err := os.ReadFile(os.Args[i+1])
		if err == nil {
			err = os.WriteFile(filepath.Join(root, appDir, config.DefaultPath), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 && os.Geteuid() != user {
		return asOther(root)
	}
	runtime.LockOSThread() // namespace, root and exec belong to one thread
	if os.Geteuid() == 0 {
		if err := jail(root); err != nil {
			return err
		}
	}
	if err := os.Chdir("/" + appDir); err != nil {
		return err
	}
	if err := os.WriteFile("/"+appDir+"/written", nil, 0o600); err == nil {
		return errors.New("the root can be written")
	}
	fmt.Fprintf(os.Stderr, entered, os.Getuid())
	args := programArgs()
	return fmt.Errorf("exec %s: %w", args[0], syscall.Exec(args[0], args, programEnv()))
}

func jail(root string) error {
	volumes := append(strings.Fields(os.Getenv(volumesVariable)), "/tmp")
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"private mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"bind", func() error { return unix.Mount(root, root, "", unix.MS_BIND, "") }},
		{"proc", func() error {
			return unix.Mount("/proc", filepath.Join(root, "proc"), "", unix.MS_BIND|unix.MS_REC, "")
		}},
		{"volumes", func() error {
			for _, v := range volumes {
				if err := unix.Mount("tmpfs", filepath.Join(root, v), "tmpfs", 0, fmt.Sprintf("uid=%d,gid=%d,mode=0700", user, user)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"read only", func() error { return unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "") }},
		{"chroot", func() error { return unix.Chroot(root) }},
		{"groups", func() error { return syscall.Setgroups(nil) }},
		{"group", func() error { return syscall.Setgid(user) }},
		{"user", func() error { return syscall.Setuid(user) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}

// asOther starts the program as user 1001 of a new user namespace. Folders but
// the volumes lose their write bit first, as there is no read-only mount.
func asOther(root string) error {
	volumes := os.Getenv(volumesVariable) + "/tmp\n"
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || strings.Contains(volumes, strings.TrimPrefix(name, root)+"\n") {
			return err
		}
		return os.Chmod(name, 0o555)
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, appDir, "written"), nil, 0o600); err == nil {
		return errors.New("the root can be written")
	}
	args := programArgs()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = programEnv(), "/"+appDir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
		Chroot:      root}
	cmd.Err = nil // the path is one of the other root
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, entered, user)
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT) // the program gets it, too, and ends
	if err := cmd.Wait(); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

const entered = "entered as user %d, the root cannot be written\n"

func programArgs() []string { return strings.Split(os.Getenv(argsVariable), "\n") }

// programEnv is the image's environment and what the demo adds. State goes where
// the image has a volume for it.
func programEnv() []string {
	env := strings.Split(os.Getenv(envVariable), "\n")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "WEIR_IMAGE_") && !strings.HasPrefix(e, "WEIR_STATE_DIR=") && !strings.HasPrefix(e, "PATH=") {
			env = append(env, e)
		}
	}
	return env
}
