package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// compression is gzip's best: an image is written once and pulled often.
const compression = 9

// epoch is the time of everything in the image: a build's own time would make
// every build another image.
var epoch = time.Unix(0, 0).UTC()

// writeLayout writes the image as an OCI layout in place of the one that stands
// there, and returns the size of its files.
func writeLayout(dir string, c *content) (int64, error) {
	if err := clearLayout(dir); err != nil {
		return 0, err
	}
	img, err := c.image()
	if err != nil {
		return 0, err
	}
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return 0, err
	}
	err = out.AppendImage(img,
		layout.WithPlatform(v1.Platform{OS: "linux", Architecture: c.arch}),
		layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": c.version,                // skopeo, podman
			"io.containerd.image.name":          c.name + ":" + c.version, // docker load
		}))
	if err != nil {
		return 0, err
	}
	return folderSize(dir)
}

// clearLayout removes an earlier layout, and nothing else.
func clearLayout(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		return fmt.Errorf("%s: expected an empty folder or an earlier layout", dir)
	}
	return os.RemoveAll(dir)
}

func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// image is layers and configuration.
func (c *content) image() (v1.Image, error) {
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	var adds []mutate.Addendum
	for _, l := range c.layers {
		data, err := l.tar()
		if err != nil {
			return nil, err
		}
		opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		made, err := tarball.LayerFromOpener(opener, tarball.WithCompressionLevel(compression),
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.Addendum{Layer: made, History: v1.History{CreatedBy: "weir-image", Comment: l.about, Created: v1.Time{Time: epoch}}})
	}
	img, err := mutate.Append(base, adds...)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", c.arch, v1.Time{Time: epoch}, c.config()
	return mutate.ConfigFile(img, file)
}

// config is how the image runs. The Dockerfile says the same, which a test
// compares.
func (c *content) config() v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		WorkingDir: "/" + appDir,
		Entrypoint: []string{"/" + program},
		Cmd:        []string{"serve"},
		Env: []string{
			"PATH=/usr/local/bin",
			"AGENT_BUILD_COMMIT=" + c.commit,
			"WEIR_STATE_DIR=/" + stateDir,
		},
		ExposedPorts: map[string]struct{}{"8000/tcp": {}},
		Volumes:      map[string]struct{}{"/" + c.cache: {}, "/" + stateDir: {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/" + program, "probe", "http", "http://127.0.0.1:8000/health"},
			Interval: 15 * time.Second, Timeout: 5 * time.Second, StartPeriod: 60 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       c.name,
			"org.opencontainers.image.description": "an agent on weir: a host whose policy is WebAssembly modules",
			"org.opencontainers.image.version":     c.version,
			"org.opencontainers.image.revision":    c.commit,
		},
	}
}

// tar writes a layer's files: owners by number, no times, in the order of names.
func (l layer) tar() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range l.entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: int64(e.mode.Perm()),
			Uid: e.owner, Gid: e.owner, ModTime: epoch, Format: tar.FormatPAX}
		if e.mode.IsDir() {
			h.Typeflag, h.Name, h.Size = tar.TypeDir, e.name+"/", 0
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
