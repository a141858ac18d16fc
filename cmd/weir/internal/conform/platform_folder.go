package conform

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func platformClause(id, section string, level Level, text string, check func(context.Context, *subject) finding) Clause {
	return Clause{ID: id, Spec: SpecPlatform, Section: section, Level: level, Text: text, check: check}
}

var (
	goVersion     = regexp.MustCompile(`(?m)^go (\d+)\.(\d+)`)
	pythonVersion = regexp.MustCompile(`requires-python\s*=\s*"[^"]*?3\.(\d+)`)
	specVersion   = regexp.MustCompile(`(?is)(platform|harness)[^\n]{0,120}?\b1\.\d+\.\d+\b`)
)

// platformCode are the clauses about the program: sections 3, 7.3 to 7.6, 11
// and 13. Those that speak of Python have a counterpart for Go.
func platformCode() []Clause {
	return []Clause{
		platformClause("language", "3.1", Must, "Python 3.12 or later; in Go 1.26 or later", local(languageVersion)),
		platformClause("framework", "3.2", Must, "Starlette serves HTTP; in Go Fiber", local(framework)),
		platformClause("entry", "3.3-3.4", Must, "the server itself is the container's first process", image(entry)),
		platformClause("port", "3.5", Must, "the container listens on 8000 or 8080", manifest(port)),
		platformClause("port-preferred", "3.5", Should, "new agents listen on 8000", manifest(func(_ *folder, _ *workload, c *container) finding {
			if !slices.ContainsFunc(c.Ports, func(p struct {
				Name          string `json:"name"`
				ContainerPort int    `json:"containerPort"`
			}) bool {
				return p.ContainerPort == 8000
			}) {
				return fail("expected the port 8000, got %v", c.Ports)
			}
			return pass()
		})),
		platformClause("log-bridge", "7.3", Must, "logs go to the OTLP provider, by app/logging_setup.py; in Go by the SDK that is compiled in", local(pythonFile("app/logging_setup.py", "configure_otlp_log_handler"))),
		platformClause("meter", "7.4", Must, "own metrics are declared at module scope of app/metrics.py; in Go by the SDK that is compiled in", local(pythonFile("app/metrics.py", "get_meter("))),
		platformClause("model-spans", "7.5", Must, "model calls are instrumented before the client is built", func(context.Context, *subject) finding {
			return skip("only a receiver of traces sees it; the agent's own tests have to")
		}),
		platformClause("environment-example", "11.4", Should, ".env.local.example names the variables that are read, its secrets blank", local(environmentExample)),
		platformClause("spec-version", "13", Should, "README.md names the version of the specification that the agent follows", local(func(f *folder) finding {
			text, err := f.read("README.md")
			if err != nil || !specVersion.MatchString(text) {
				return fail("expected a sentence with the platform specification's version 1.x.y in README.md")
			}
			return pass()
		})),
	}
}

func languageVersion(f *folder) finding {
	switch f.language {
	case goLang:
		text, _ := f.read("go.mod")
		m := goVersion.FindStringSubmatch(text)
		if m == nil || m[1] == "1" && atoi(m[2]) < 26 {
			return fail("go.mod: expected go 1.26 or later, got %q", m)
		}
		return pass()
	case python:
		text, _ := f.read("pyproject.toml")
		if m := pythonVersion.FindStringSubmatch(text); m != nil {
			if atoi(m[1]) < 12 {
				return fail("pyproject.toml: expected requires-python 3.12 or later, got 3.%s", m[1])
			}
			return pass()
		}
		return skip("requirements.txt alone does not say; the image's base does (8.1)")
	}
	return fail("expected go.mod, pyproject.toml or requirements.txt")
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func framework(f *folder) finding {
	file, library := "go.mod", "github.com/gofiber/fiber/"
	switch f.language {
	case python:
		file, library = "requirements.txt", "starlette"
	case unknown:
		return skip("the language is not known (3.1)")
	}
	text, _ := f.read(file)
	if more, err := f.read("pyproject.toml"); err == nil && f.language == python {
		text += more
	}
	if !strings.Contains(strings.ToLower(text), library) {
		return fail("%s: expected %s", file, library)
	}
	return pass()
}

func entry(f *folder, d *dockerfile) finding {
	entrypoint, cmd := d.last("ENTRYPOINT"), d.last("CMD")
	line := strings.TrimSpace(entrypoint + " " + cmd)
	if f.language == python && !strings.Contains(strings.NewReplacer(`"`, "", `,`, "", "[", "", "]", "").Replace(line), "uvicorn app.agent:app") {
		return fail("expected uvicorn app.agent:app, got %s", line)
	}
	for _, part := range []string{entrypoint, cmd} {
		if part != "" && !strings.HasPrefix(part, "[") {
			return fail("expected the form with brackets, or a shell is the first process: %s", part)
		}
	}
	if line == "" {
		return fail("expected ENTRYPOINT or CMD")
	}
	return pass()
}

func port(f *folder, _ *workload, c *container) finding {
	for _, p := range c.Ports {
		if p.Name == "http" {
			if p.ContainerPort != 8000 && p.ContainerPort != 8080 {
				return fail("expected 8000 or 8080, got %d", p.ContainerPort)
			}
			return pass()
		}
	}
	return fail("expected a port with the name http, got %v", c.Ports)
}

// pythonFile looks for a file that Python agents have to ship.
func pythonFile(name, part string) func(*folder) finding {
	return func(f *folder) finding {
		if f.language != python {
			return skip("a clause about Python; what leaves the process is seen by a receiver of telemetry only")
		}
		text, err := f.read(name)
		if err != nil || !strings.Contains(text, part) {
			return fail("expected %s with %s", name, part)
		}
		return pass()
	}
}

var secretName = regexp.MustCompile(`(KEY|SECRET|TOKEN|PASSWORD)$`)

func environmentExample(f *folder) finding {
	text, err := f.read(".env.local.example")
	if err != nil {
		return fail("expected .env.local.example")
	}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimLeft(line, "# ")), "=")
		if ok && secretName.MatchString(name) && strings.TrimSpace(value) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			return fail("%s: expected a blank value for a secret", name)
		}
	}
	return pass()
}

// platformImage are the clauses of section 8.
func platformImage() []Clause {
	return []Clause{
		platformClause("dockerfile", "8", Must, "there is a Dockerfile", local(func(f *folder) finding {
			if f.docker == nil {
				return fail("expected a Dockerfile")
			}
			return pass()
		})),
		platformClause("image-base", "8.1", Must, "the base is python:3.12-slim or 3.13-slim; in Go a static one", image(func(f *folder, d *dockerfile) finding {
			good := regexp.MustCompile(`^(scratch$|.*\bstatic\b|.*distroless/static)`)
			if f.language == python {
				good = regexp.MustCompile(`(^|/)python:3\.1[23]-slim`)
			}
			if !good.MatchString(d.base) {
				return fail("the last stage is on %q", d.base)
			}
			return pass()
		})),
		platformClause("image-dependencies", "8.2", Must, "dependencies are installed when the image is built, never when it runs", image(func(_ *folder, d *dockerfile) finding {
			if line := d.last("ENTRYPOINT") + " " + d.last("CMD"); regexp.MustCompile(`\b(pip3?|apt|apt-get|apk|npm)\b.*\b(install|add)\b|\bgo\b.*\brun\b`).MatchString(line) {
				return fail("the image installs when it starts: %s", line)
			}
			return pass()
		})),
		platformClause("image-user", "8.3", Must, "the image runs as user 1001, not as root", image(func(_ *folder, d *dockerfile) finding {
			u := d.last("USER")
			id, _, _ := strings.Cut(u, ":")
			named := id != "" && atoi(id) == 0 && id != "0" && id != "root" &&
				slices.ContainsFunc(d.all("RUN"), func(run string) bool { return strings.Contains(run, "1001") && strings.Contains(run, id) })
			if id != "1001" && !named {
				return fail("expected USER 1001, got %q", u)
			}
			return pass()
		})),
		platformClause("image-port", "8.4", Must, "the image exposes the agent's port and no other", image(func(f *folder, d *dockerfile) finding {
			ports := strings.Fields(strings.Join(d.all("EXPOSE"), " "))
			for i := range ports {
				ports[i] = strings.TrimSuffix(ports[i], "/tcp")
			}
			if len(ports) != 1 || ports[0] != "8000" && ports[0] != "8080" {
				return fail("expected one of 8000 and 8080, got %q", ports)
			}
			if f.deployment != nil && !slices.ContainsFunc(f.deployment.agent().Ports, func(p struct {
				Name          string `json:"name"`
				ContainerPort int    `json:"containerPort"`
			}) bool {
				return strconv.Itoa(p.ContainerPort) == ports[0]
			}) {
				return fail("the image exposes %s, the pod another port", ports[0])
			}
			return pass()
		})),
		platformClause("image-health", "8.5", Should, "HEALTHCHECK asks GET /health", image(func(_ *folder, d *dockerfile) finding {
			if h := d.last("HEALTHCHECK"); !strings.Contains(h, "/health") {
				return fail("expected a HEALTHCHECK of /health, got %q", h)
			}
			return pass()
		})),
		platformClause("image-tags", "8.6", Must, "the pod's image is <registry>/<agent-name>:<.image-version>", manifest(func(f *folder, w *workload, c *container) finding {
			if f.version == "" {
				return skip("there is no version to compare with (10.1)")
			}
			registry, rest, ok := strings.Cut(c.Image, "/")
			if !ok || !strings.Contains(registry, ".") || rest != w.Metadata.Name+":"+f.version {
				return fail("expected <registry>/%s:%s, got %q", w.Metadata.Name, f.version, c.Image)
			}
			return pass()
		})),
	}
}

// platformDeployment are the clauses of section 10.
func platformDeployment() []Clause {
	return []Clause{
		platformClause("image-version", "10.1", Must, ".image-version is one line X.Y.Z", local(func(f *folder) finding {
			if f.version == "" {
				return fail("expected .image-version with one line X.Y.Z")
			}
			return pass()
		})),
		platformClause("deploy-script", "10.2", Must, "scripts/deploy.sh bumps the version without --tag, builds both tags, applies ConfigMap and then Deployment, and waits", local(deployScript)),
		platformClause("deploy-wait", "10.2", Should, "the rollout is waited for at least 180 s", local(func(f *folder) finding {
			text, err := f.read("scripts/deploy.sh")
			if err != nil {
				return skip("there is no scripts/deploy.sh (10.2)")
			}
			return rolloutWait(text)
		})),
		platformClause("other-scripts", "10.3", Should, "scripts/full-deploy.sh and scripts/deploy-local.sh are there", local(func(f *folder) finding {
			for _, name := range []string{"scripts/full-deploy.sh", "scripts/deploy-local.sh"} {
				if !f.has(name) {
					return fail("expected %s", name)
				}
			}
			return pass()
		})),
		platformClause("version-commit", "10.4", Must, "the last commit does not change .image-version alone, unless it is a redeploy", func(ctx context.Context, s *subject) finding {
			return local(func(f *folder) finding { return versionCommit(ctx, f) })(ctx, s)
		}),
	}
}

func deployScript(f *folder) finding {
	text, err := f.read("scripts/deploy.sh")
	if err != nil {
		return fail("expected scripts/deploy.sh")
	}
	var code strings.Builder // without comments
	for line := range strings.Lines(continued.ReplaceAllString(text, " ")) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			code.WriteString(line)
		}
	}
	text = code.String()
	for _, need := range []struct{ what, expr string }{
		{"--tag", `--tag`},
		{"to write .image-version", `>\s*"?\S*\.image-version|-i\b.*\.image-version|tee .*\.image-version`},
		{"`az acr build --registry`", `az acr build\b.*--registry`},
		{"the image with the tag", `--image\s+\S+:\$\{?\w*(?i:tag|version)`},
		{"the image with latest", `--image\s+\S+:latest`},
		{"kubectl rollout status", `kubectl\b.*\brollout status`},
	} {
		if !regexp.MustCompile(need.expr).MatchString(text) {
			return fail("expected %s", need.what)
		}
	}
	first := strings.Index(text, "apply -f k8s/configmap.yaml")
	second := strings.Index(text, "apply -f k8s/deployment.yaml")
	if first < 0 || second < first {
		return fail("expected kubectl apply -f k8s/configmap.yaml and then k8s/deployment.yaml")
	}
	return pass()
}

var (
	waits       = regexp.MustCompile(`--timeout[= ]"?(\d+)(s|m)`)
	waitsByName = regexp.MustCompile(`--timeout[= ]"?\$\{?(\w+)\}?s?`)
)

func rolloutWait(text string) finding {
	seconds := 0
	if m := waits.FindStringSubmatch(text); m != nil {
		if seconds = atoi(m[1]); m[2] == "m" {
			seconds *= 60
		}
	} else if m := waitsByName.FindStringSubmatch(text); m != nil {
		if m := regexp.MustCompile(`\b` + m[1] + `=(?:\$\{\w+:-)?"?(\d+)`).FindStringSubmatch(text); m != nil {
			seconds = atoi(m[1])
		}
	}
	if seconds < 180 {
		return fail("expected --timeout of at least 180s, found %d s", seconds)
	}
	return pass()
}

// versionCommit asks git, where there is one and a history.
func versionCommit(ctx context.Context, f *folder) finding {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", f.dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	// Names are relative to the folder, which may be a part of a repository.
	changed, err := git("diff", "--name-only", "--relative", "HEAD~1", "HEAD")
	if err != nil {
		return skip("there is no git history to ask")
	}
	files := strings.Split(changed, "\n")
	other := slices.ContainsFunc(files, func(name string) bool {
		return name != ".image-version" && filepath.ToSlash(name) != "k8s/deployment.yaml"
	})
	if !slices.Contains(files, ".image-version") || other {
		return pass()
	}
	subject, err := git("log", "-1", "--format=%s")
	if err == nil && strings.Contains(strings.ToLower(subject), "redeploy") {
		return pass()
	}
	return fail("the last commit changes the version alone and does not call itself a redeploy: %s", fmt.Sprintf("%.80q", subject))
}
