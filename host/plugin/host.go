package plugin

import (
	"context"
	"errors"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"weir/abi"
	"weir/host/plugin/instrument"
)

// hostFunction is one function that a guest may import. It may read and write
// the guest's memory, which stays valid until it returns.
type hostFunction struct {
	name string
	typ  signature
	do   func(s *session, mem api.Memory, args []uint64) (errno uint32)
}

// sessionKey finds the session of the calling instance in the context of a call.
type sessionKey struct{}

// callContext is the context of the guest functions of one instance: the
// caller's, with the session. It is part of the instance, because a context
// made for each call would be garbage of each call.
type callContext struct {
	context.Context
	session *session
}

func (c *callContext) Value(key any) any {
	if key == (sessionKey{}) {
		return c.session
	}
	return c.Context.Value(key)
}

// hostModules lists everything that a guest may import.
func hostModules() map[string][]hostFunction {
	return map[string][]hostFunction{
		abi.ImportModule: {{abi.ImportLog, signature{params: "\x7f\x7f\x7f"}, weirLog}},
		abi.ImportWASI:   wasiFunctions(),
	}
}

// hostSignature returns the type of an importable function.
func hostSignature(module, name string) (signature, bool) {
	for _, f := range hostModules()[module] {
		if f.name == name {
			return f.typ, true
		}
	}
	return signature{}, false
}

// linkHost instantiates the host modules in a runtime.
func linkHost(ctx context.Context, engine wazero.Runtime) error {
	for module, functions := range hostModules() {
		b := engine.NewHostModuleBuilder(module)
		for _, f := range functions {
			b.NewFunctionBuilder().
				WithGoModuleFunction(f.bind(), []byte(f.typ.params), []byte(f.typ.results)).
				Export(f.name)
		}
		if module == instrument.RefuelModule {
			b.NewFunctionBuilder().
				WithGoModuleFunction(api.GoModuleFunc(refuel), []byte{typeI64}, []byte{typeI64}).
				Export(instrument.RefuelName)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refuel is what instrumented code calls when its fuel is used up.
func refuel(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = uint64(sessionOf(ctx).meter.refuel(int64(stack[0])))
}

func sessionOf(ctx context.Context) *session {
	s, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		panic(errors.New("a host function was called outside of a call"))
	}
	return s
}

func (f hostFunction) bind() api.GoModuleFunc {
	answers := len(f.typ.results) > 0
	return func(ctx context.Context, m api.Module, stack []uint64) {
		s := sessionOf(ctx)
		s.meter.charge(hostCall)
		errno := f.do(s, m.Memory(), stack)
		if answers {
			stack[0] = uint64(errno)
		}
	}
}

// weirLog is weir.log (level, ptr, len).
func weirLog(s *session, mem api.Memory, args []uint64) uint32 {
	level, ptr, size := int32(uint32(args[0])), uint32(args[1]), uint32(args[2])
	text, ok := mem.Read(ptr, size)
	if !ok {
		panic(errors.New("weir.log was given text outside of the memory"))
	}
	s.meter.charge(printUnits(len(text)))
	s.printer.line(int(level), text)
	return 0
}

func sig(params string) signature {
	types := []byte(params)
	for i, t := range types {
		types[i] = map[byte]byte{'i': typeI32, 'l': typeI64}[t]
	}
	return signature{params: string(types), results: "\x7f"}
}

// nosys lists the functions of WASI preview 1 that answer ENOSYS. They are
// linked, because a guest's library imports much that it never calls.
func nosys() []hostFunction {
	list := map[string]string{
		"clock_res_get": "ii", "fd_advise": "illi", "fd_allocate": "ill", "fd_close": "i",
		"fd_datasync": "i", "fd_fdstat_get": "ii", "fd_fdstat_set_flags": "ii",
		"fd_fdstat_set_rights": "ill", "fd_filestat_get": "ii", "fd_filestat_set_size": "il",
		"fd_filestat_set_times": "illi", "fd_pread": "iiili", "fd_prestat_dir_name": "iii",
		"fd_pwrite": "iiili", "fd_read": "iiii", "fd_readdir": "iiili", "fd_renumber": "ii",
		"fd_seek": "ilii", "fd_sync": "i", "fd_tell": "ii", "path_create_directory": "iii",
		"path_filestat_get": "iiiii", "path_filestat_set_times": "iiiilli",
		"path_link": "iiiiiii", "path_open": "iiiiillii", "path_readlink": "iiiiii",
		"path_remove_directory": "iii", "path_rename": "iiiiii", "path_symlink": "iiiii",
		"path_unlink_file": "iii", "proc_raise": "i", "sock_accept": "iii",
		"sock_recv": "iiiiii", "sock_send": "iiiii", "sock_shutdown": "ii",
	}
	var functions []hostFunction
	for name, params := range list {
		functions = append(functions, hostFunction{name, sig(params),
			func(*session, api.Memory, []uint64) uint32 { return errnoNosys }})
	}
	slices.SortFunc(functions, func(a, b hostFunction) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return functions
}
