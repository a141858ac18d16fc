package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxFile bounds a file of the folder; none of them is large.
const maxFile = 4 << 20

// language is what the agent is written in.
type language string

const (
	goLang  language = "Go"
	python  language = "Python"
	unknown language = ""
)

// folder is what an agent is deployed from.
type folder struct {
	dir        string
	language   language
	docker     *dockerfile // nil: there is none
	deployment *workload
	service    *networkService
	broken     error  // of the manifests
	version    string // of .image-version, "" if it is not right
}

// workload is the part of a Deployment that the specification speaks of.
type workload struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Template struct {
			Metadata metadata `json:"metadata"`
			Spec     struct {
				ServiceAccountName string      `json:"serviceAccountName"`
				Containers         []container `json:"containers"`
				Volumes            []struct {
					Name string `json:"name"`
					CSI  struct {
						VolumeAttributes map[string]string `json:"volumeAttributes"`
					} `json:"csi"`
				} `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	Ports []struct {
		Name          string `json:"name"`
		ContainerPort int    `json:"containerPort"`
	} `json:"ports"`
	Env          []variable `json:"env"`
	VolumeMounts []struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
	} `json:"volumeMounts"`
	LivenessProbe  *probe `json:"livenessProbe"`
	ReadinessProbe *probe `json:"readinessProbe"`
	Resources      struct {
		Requests map[string]any `json:"requests"`
		Limits   map[string]any `json:"limits"`
	} `json:"resources"`
}

type variable struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	ValueFrom struct {
		SecretKeyRef *struct {
			Name string `json:"name"`
		} `json:"secretKeyRef"`
	} `json:"valueFrom"`
}

type probe struct {
	HTTPGet struct {
		Path string `json:"path"`
		Port any    `json:"port"`
	} `json:"httpGet"`
	InitialDelaySeconds int `json:"initialDelaySeconds"`
	PeriodSeconds       int `json:"periodSeconds"`
}

type networkService struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Type     string            `json:"type"`
		Selector map[string]string `json:"selector"`
		Ports    []struct {
			Port       int `json:"port"`
			TargetPort any `json:"targetPort"`
		} `json:"ports"`
	} `json:"spec"`
}

// open reads the folder once.
func (s *subject) open() *folder {
	if s.folder != nil {
		return s.folder
	}
	f := &folder{dir: s.Dir}
	s.folder = f
	switch {
	case f.has("go.mod"):
		f.language = goLang
	case f.has("pyproject.toml") || f.has("requirements.txt"):
		f.language = python
	}
	if text, err := f.read("Dockerfile"); err == nil {
		f.docker = readDockerfile(text)
	}
	if text, err := f.read(".image-version"); err == nil {
		if m := versionLine.FindStringSubmatch(text); m != nil {
			f.version = m[1]
		}
	}
	f.readManifests()
	return f
}

var versionLine = regexp.MustCompile(`^((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*))\n?$`)

func (f *folder) read(name string) (string, error) {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", fmt.Errorf("%s: expected a file of at most %d bytes", name, maxFile)
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

func (f *folder) has(name string) bool {
	_, err := f.read(name)
	return err == nil
}

// readManifests finds the Deployment and the Service, in one file or two.
func (f *folder) readManifests() {
	if f.broken = f.decodeManifests(); f.broken != nil {
		f.deployment, f.service = nil, nil // half of a file is no answer
	}
}

func (f *folder) decodeManifests() error {
	text, err := f.read("k8s/deployment.yaml")
	if err != nil {
		return errors.New("k8s/deployment.yaml cannot be read")
	}
	if more, err := f.read("k8s/service.yaml"); err == nil {
		text += "\n---\n" + more
	}
	for _, doc := range bytes.Split([]byte(text), []byte("\n---")) {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return fmt.Errorf("k8s/deployment.yaml: %w", err)
		}
		switch head.Kind {
		case "Deployment":
			f.deployment = &workload{}
			err = yaml.Unmarshal(doc, f.deployment)
		case "Service":
			f.service = &networkService{}
			err = yaml.Unmarshal(doc, f.service)
		}
		if err != nil {
			return fmt.Errorf("k8s/deployment.yaml: %s: %w", head.Kind, err)
		}
	}
	if f.deployment == nil || len(f.deployment.Spec.Template.Spec.Containers) == 0 {
		return errors.New("k8s/deployment.yaml: there is no Deployment with a container")
	}
	return nil
}

// agent is the container that the pod is for: the first.
func (w *workload) agent() *container { return &w.Spec.Template.Spec.Containers[0] }

func (c *container) env(name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// local makes a check of the folder.
func local(check func(*folder) finding) func(context.Context, *subject) finding {
	return func(_ context.Context, s *subject) finding {
		if s.Dir == "" {
			return skip("no folder was named with --dir")
		}
		return check(s.open())
	}
}

// manifest makes a check of the Deployment.
func manifest(check func(*folder, *workload, *container) finding) func(context.Context, *subject) finding {
	return local(func(f *folder) finding {
		if f.deployment == nil {
			return skip("there is no Deployment to read")
		}
		return check(f, f.deployment, f.deployment.agent())
	})
}

// dockerfile is the last stage of a Dockerfile, which is the image.
type dockerfile struct {
	base  string
	lines []dockerLine // of the last stage
}

type dockerLine struct{ name, args string }

var continued = regexp.MustCompile(`\\\r?\n`)

func readDockerfile(text string) *dockerfile {
	d := &dockerfile{}
	for line := range strings.Lines(continued.ReplaceAllString(text, " ")) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, args = strings.ToUpper(name), strings.TrimSpace(args)
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
		case name == "FROM":
			fields := strings.Fields(args)
			for len(fields) > 1 && strings.HasPrefix(fields[0], "--") {
				fields = fields[1:]
			}
			d.base, d.lines = strings.Join(fields[:min(1, len(fields))], ""), nil
		default:
			d.lines = append(d.lines, dockerLine{name, args})
		}
	}
	return d
}

// all are the arguments of every instruction of that name.
func (d *dockerfile) all(name string) (out []string) {
	for _, l := range d.lines {
		if l.name == name {
			out = append(out, l.args)
		}
	}
	return out
}

// last are the arguments of the instruction that counts.
func (d *dockerfile) last(name string) string {
	if all := d.all(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// image makes a check of the Dockerfile.
func image(check func(*folder, *dockerfile) finding) func(context.Context, *subject) finding {
	return local(func(f *folder) finding {
		if f.docker == nil {
			return skip("there is no Dockerfile to read")
		}
		return check(f, f.docker)
	})
}
