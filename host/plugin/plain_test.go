package plugin_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"weir/abi"
)

// plain runs a module on wazero as it comes, to compare with.
type plain struct {
	engine wazero.Runtime
	module api.Module
}

func newPlain(t testing.TB, wasm []byte, runtime wazero.RuntimeConfig, module wazero.ModuleConfig) *plain {
	t.Helper()
	ctx := context.Background()
	p := &plain{engine: wazero.NewRuntimeWithConfig(ctx, runtime)}
	t.Cleanup(func() { _ = p.engine.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, p.engine)
	_, err := p.engine.NewHostModuleBuilder(abi.ImportModule).NewFunctionBuilder().
		WithFunc(func(int32, int32, int32) {}).Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.engine.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	if p.module, err = p.engine.InstantiateModule(ctx, code, module.WithStartFunctions("_initialize").WithName("")); err != nil {
		t.Fatal(err)
	}
	return p
}

// call does what the direct carrier does.
func (p *plain) call(ctx context.Context, hook abi.Hook, request []byte) ([]byte, error) {
	out, err := p.module.ExportedFunction(abi.ExportAlloc).Call(ctx, uint64(len(request)))
	if err != nil {
		return nil, err
	}
	at := out[0]
	p.module.Memory().Write(uint32(at), request)
	if out, err = p.module.ExportedFunction(string(hook)).Call(ctx, at, uint64(len(request))); err != nil {
		return nil, err
	}
	reply, _ := p.module.Memory().Read(uint32(out[0]>>32), uint32(out[0]))
	return reply, nil
}
