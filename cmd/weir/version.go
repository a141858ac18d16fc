package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/plugin"
)

// version prints what the binary is made of.
func (w *weir) version(_ context.Context, args []string) int {
	f := w.flags("version")
	asJSON := f.Bool("json", false, "print one JSON object")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	commit, modified := revision()
	if !*asJSON {
		fmt.Fprintf(w.stdout, "weir %s%s\nabi %d\nengine %s\n%s %s/%s\n", commit, modified, abi.Version,
			plugin.Engine, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	}
	b := strictjson.AppendString([]byte(`{"commit":`), commit+modified)
	b = strictjson.AppendInt(append(b, `,"abi":`...), abi.Version)
	b = strictjson.AppendString(append(b, `,"engine":`...), plugin.Engine)
	b = strictjson.AppendString(append(b, `,"go":`...), runtime.Version())
	b = strictjson.AppendString(append(b, `,"platform":`...), runtime.GOOS+"/"+runtime.GOARCH)
	fmt.Fprintf(w.stdout, "%s}\n", b)
	return exitOK
}

// revision is the commit that the binary was built from, as far as the build
// knows.
func revision() (commit, modified string) {
	commit = "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return commit, ""
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return commit, modified
}
