package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestKindSurvivesWrapping(t *testing.T) {
	inner := Coded(Unavailable, "timeout", "model: no first token within %ds: %w", 60, io.ErrUnexpectedEOF)
	err := fmt.Errorf("run: %w", New(Plugin, "step: %w", inner))
	if got := Of(err); got != Plugin {
		t.Errorf("Of = %v, want the outermost kind %v", got, Plugin)
	}
	if got := CodeOf(err); got != "timeout" {
		t.Errorf("CodeOf = %q, want the nearest code", got)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if got, want := err.Error(), "run: step: model: no first token within 60s: unexpected EOF"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestPlainErrorIsInternal(t *testing.T) {
	if got := Of(io.EOF); got != Internal {
		t.Errorf("Of(io.EOF) = %v, want %v", got, Internal)
	}
	if got := CodeOf(io.EOF); got != "" {
		t.Errorf("CodeOf(io.EOF) = %q, want none", got)
	}
	if got := Kind(200).String(); got != "internal" {
		t.Errorf("unknown kind prints %q", got)
	}
}
