package instrument

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const slice = 200_000

// meter is a host's side of refuel: it hands out slices until the budget is
// used up, and can tell how much was used.
type meter struct {
	budget  int64 // zero is none
	granted int64
	slices  int
	each    func() // called in every refuel
}

func (m *meter) refuel(_ context.Context, stack []uint64) {
	left := int64(stack[0])
	if m.each != nil {
		m.each()
	}
	if used := m.granted - left; m.budget > 0 && used > m.budget {
		panic(fmt.Errorf("budget of %d spent", m.budget))
	}
	grant := max(slice, slice-left)
	m.granted += grant
	m.slices++
	stack[0] = uint64(left + grant)
}

// used returns the fuel that an instance has used since it began.
func (m *meter) used(mod api.Module) int64 {
	return m.granted - int64(mod.ExportedGlobal(FuelGlobal).Get())
}

func (m *meter) link(t testing.TB, r wazero.Runtime) {
	t.Helper()
	_, err := r.NewHostModuleBuilder(RefuelModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(m.refuel), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(RefuelName).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func newEngine(t testing.TB) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func anyImport(Import) error { return nil }

// trap names what ended a call, without the stack trace, which has the
// function numbers of its module.
func trap(err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(first, " (recovered by wazero)")
}
