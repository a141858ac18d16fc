package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir/abi"
	"weir/host/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type outputFunc func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error)

func (f outputFunc) CheckOutput(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	r, err := f(q)
	return r, 0, err
}

func chain(t *testing.T, f outputFunc) *guard.Chain {
	t.Helper()
	c, err := guard.New([]guard.Guard{{Name: "g", Output: f}}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// maskCat masks "cat". A careful one holds back what may become one.
func maskCat(careful bool) outputFunc {
	return func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		r := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
		for at := 0; ; {
			i := strings.Index(q.Text[at:], "cat")
			if i < 0 {
				break
			}
			r.Edits = append(r.Edits, abi.Edit{Start: at + i, End: at + i + 3, Replace: "<CAT>", Label: "CAT"})
			at += i + 3
		}
		for _, part := range []string{"ca", "c"} {
			if careful && !q.Final && strings.HasSuffix(q.Text, part) {
				r.HoldFrom -= len(part)
				break
			}
		}
		return r, nil
	}
}

func TestProveHolds(t *testing.T) {
	const text = "a cat and a c€at, ccat"
	p, err := Prove(t.Context(), chain(t, maskCat(true)), text, Options{Random: 10})
	if err != nil || p.Broken != nil || p.Whole != "a <CAT> and a c€at, c<CAT>" || p.Cut {
		t.Fatalf("%+v, %v", p, err)
	}
	if want := 1 + len(text) - 1 + 2 + 10; p.Runs != want {
		t.Errorf("%d runs, want %d", p.Runs, want)
	}
	p, err = Prove(t.Context(), chain(t, maskCat(true)), text, Options{Random: 1, Splits: 5})
	if want := 1 + 4 + 2 + 1; err != nil || p.Runs != want {
		t.Errorf("%d runs, want %d: %v", p.Runs, want, err)
	}
}

// A guard that lets the first half out is caught, and shown with nothing around it.
func TestProveFindsTheSmallest(t *testing.T) {
	text := strings.Repeat("long before ", 20) + "cat" + strings.Repeat(" long after", 20)
	p, err := Prove(t.Context(), chain(t, maskCat(false)), text, Options{})
	if err != nil || p.Broken == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	want := &Counterexample{Pieces: []string{"c", "at"}, Released: "cat", Whole: "<CAT>"}
	if diff := cmp.Diff(want, p.Broken); diff != "" {
		t.Errorf("counterexample (-want +got):\n%s", diff)
	}
}

// The promise says nothing of failures, so there is nothing to prove.
func TestProveNeedsGuardsThatWork(t *testing.T) {
	_, err := Prove(t.Context(), chain(t, func(*abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		return nil, errors.New("broken")
	}), "text", Options{})
	if err == nil || !strings.Contains(err.Error(), "guard g failed: broken") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prove(ctx, chain(t, maskCat(true)), "text", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestChunkings(t *testing.T) {
	const text = "é€ two  words\n"
	for in, want := range map[string][]string{
		"each":  strings.Split(text, ""),
		"3":     {"é€ ", "two", "  w", "ord", "s\n"},
		"words": {"é€ ", "two  ", "words\n"},
		"whole": {text},
		"99":    {text},
	} {
		c, err := ParseChunking(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Cut(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
		if n := len(c.Cut("")); n != 0 {
			t.Errorf("%s: %d pieces of nothing", in, n)
		}
	}
	a, _ := ParseChunking("random:7")
	long := strings.Repeat(text, 20)
	if got := a.Cut(long); strings.Join(got, "") != long || !slices.Equal(got, a.Cut(long)) || len(got) < 5 {
		t.Errorf("random pieces %q", got)
	}
	for _, in := range []string{"", "0", "-1", "x", "random", "random:", "random:x"} {
		if _, err := ParseChunking(in); err == nil {
			t.Errorf("%q is taken", in)
		}
	}
}
