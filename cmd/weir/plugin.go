package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/plugin"
)

// pluginCall loads one module and calls one of its hooks with the request on
// stdin.
func (w *weir) pluginCall(ctx context.Context, args []string) int {
	f := w.flags("plugin call")
	hook := f.String("hook", "", "the hook to call: "+hookNames())
	cache := f.String("cache", "", "folder of compiled modules; without it every call compiles")
	var settings abi.Raw
	f.Func("config", "the plugin's configuration as JSON, or @FILE", func(text string) (err error) {
		settings, err = jsonArgument(text)
		return err
	})
	var prompts []abi.Prompt
	f.Func("prompt", "a prompt for the plugin, NAME=TEXT or NAME=@FILE; may be repeated", func(text string) error {
		p, err := promptArgument(text)
		prompts = append(prompts, p)
		return err
	})
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	if !slices.Contains(abi.Hooks(), abi.Hook(*hook)) {
		fmt.Fprintf(w.stderr, "weir plugin call: expected --hook with one of %s, got %q\n", hookNames(), *hook)
		return exitUsage
	}
	log, err := w.logger(slog.LevelInfo)
	if err != nil {
		return w.refuse("weir plugin call", err)
	}
	spec := plugin.Spec{Config: settings, Prompts: prompts, Log: true}
	err = w.call(ctx, rest[0], abi.Hook(*hook), spec, plugin.RuntimeOptions{CacheDir: *cache, Logger: log})
	if err != nil {
		return w.refuse("weir plugin call", err)
	}
	return exitOK
}

func (w *weir) call(ctx context.Context, file string, hook abi.Hook, spec plugin.Spec, opts plugin.RuntimeOptions) (err error) {
	request, err := w.request()
	if err != nil {
		return err
	}
	spec.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if spec.Wasm, err = os.ReadFile(file); err != nil {
		return err
	}
	runtime, err := plugin.NewRuntime(ctx, opts)
	if err != nil {
		return err
	}
	// An interrupted call still has to be put away.
	defer func() { err = errors.Join(err, runtime.Close(context.WithoutCancel(ctx))) }()
	p, err := runtime.Load(ctx, spec)
	if err != nil {
		return err
	}
	start := time.Now()
	reply, _, err := p.Call(ctx, hook, request)
	took := time.Since(start)
	if err != nil {
		return err
	}
	opts.Logger.Info("called", "plugin", spec.Name, "hook", string(hook), "took", took.Round(time.Microsecond),
		"request_bytes", len(request), "reply_bytes", len(reply))
	_, err = fmt.Fprintf(w.stdout, "%s\n", reply)
	return err
}

// maxRequest bounds a request; far above what a hook gets from the host.
const maxRequest = 64 << 20

// request reads the request. Members that the host would add are added where
// they are missing, with fixed values, so that a call can be repeated.
func (w *weir) request() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(w.stdin, maxRequest+1))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if len(data) > maxRequest {
		return nil, errors.New("request: expected at most 64 MiB")
	}
	if strings.TrimSpace(string(data)) == "" {
		data = []byte("{}")
	}
	members := map[string]bool{}
	d := strictjson.NewDecoder(data)
	err = d.Object(func(name string) error { members[name] = true; return d.Skip() })
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return complete(data, members), nil
}

// complete puts now and seed before the members of an object.
func complete(object []byte, members map[string]bool) []byte {
	var add []string
	if !members["now"] {
		add = append(add, `"now":0`)
	}
	if !members["seed"] {
		add = append(add, `"seed":"0"`)
	}
	if len(add) == 0 {
		return object
	}
	if len(members) > 0 {
		add = append(add, "")
	}
	open := strings.IndexByte(string(object), '{') + 1
	return []byte("{" + strings.Join(add, ",") + string(object[open:]))
}

func jsonArgument(text string) (abi.Raw, error) {
	text, err := textArgument(text)
	if err != nil {
		return nil, err
	}
	if strictjson.NewDecoder([]byte(text)).Kind() != strictjson.Object {
		return nil, errors.New("expected a JSON object")
	}
	if err := strictjson.Valid([]byte(text)); err != nil {
		return nil, err
	}
	return abi.Raw(text), nil
}

func promptArgument(text string) (abi.Prompt, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return abi.Prompt{}, errors.New("expected NAME=TEXT or NAME=@FILE")
	}
	value, err := textArgument(value)
	return abi.Prompt{Name: name, Text: value}, err
}

// textArgument is the text itself or, after @, a file's.
func textArgument(text string) (string, error) {
	file, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	data, err := os.ReadFile(file)
	return string(data), err
}

func hookNames() string {
	var names []string
	for _, h := range abi.Hooks() {
		names = append(names, string(h))
	}
	return strings.Join(names, ", ")
}
