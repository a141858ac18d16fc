package store

import (
	"context"
	"iter"
)

// Change says that a log has reached a position.
type Change struct {
	Log      string
	Position int64
}

// Changer tells of appends to many logs at once; every backend does.
type Changer interface {
	// Changes yields the zero Change when it listens, and from then on the logs
	// with the prefix that are appended to, whoever appends. Of several appends to one log that
	// nobody has taken yet it may leave out all but the last. It ends with the
	// context's error, or with Unavailable when the backend does not answer;
	// whoever begins again looks for what it missed.
	Changes(ctx context.Context, prefix string) iter.Seq2[Change, error]
}
