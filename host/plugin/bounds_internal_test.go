package plugin

import (
	"testing"
	"time"

	"weir/abi"
)

// DECISIONS 10: what is shown of a tool's result may be as long as the result,
// so it has the time of one. The next piece of an answer is short.
func TestDisplaysHaveTheTimeOfResults(t *testing.T) {
	const kib = 256
	for name, tt := range map[string]struct {
		request string
		limits  Limits
		want    time.Duration
	}{
		"answer":               {`{"now":1,"seed":"1","text":"a"}`, Limits{}, 50 * time.Millisecond},
		"answer, said":         {`{"now":1,"seed":"1","use":"answer","text":"a"}`, Limits{}, 50 * time.Millisecond},
		"display":              {`{"now":1,"seed":"1","use":"display","texts":["a"]}`, Limits{}, (50 + kib) * time.Millisecond},
		"no use":               {`{"now":1,"seed":"1","use":null}`, Limits{}, 50 * time.Millisecond},
		"the operator's limit": {`{"now":1,"seed":"1","use":"display"}`, Limits{Timeout: time.Second, TimeoutPerKiB: time.Microsecond}, time.Second + kib*time.Microsecond},
	} {
		st, err := stampIn([]byte(tt.request))
		if err != nil {
			t.Fatal(err)
		}
		p := &Plugin{limits: tt.limits}
		if got := p.bounds(abi.HookCheckOutput, st, kib<<10).time; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
