// Package store is what weir needs to remember: append-only logs, small values
// with compare-and-set, and blobs by digest. Backends lie in folders of their
// own and pass one suite, storetest.
//
// A log is a sequence of messages; its position is how many it has. Appending
// names the position that the log is expected to have, so of several appenders
// at one position exactly one wins:
//
//	position   1          2          3
//	         ┌──────────┬──────────┬──────────┐
//	         │ records… │ records… │ records… │  Append(expected 3) → 4
//	         └──────────┴──────────┴──────────┘
//
// All methods are safe for concurrent use and give up when their context ends,
// with an error that wraps the context's. Other errors are of these kinds:
// Invalid (a name, an id or an argument is none), Conflict, NotFound, Gone,
// Limit, Unavailable when the backend does not answer, and Internal for what is
// stored and cannot be read. After Unavailable, and when a context ended, it is
// not known whether a change was made.
//
// Nothing that is stored is ever passed over. A message, a value or a blob that
// is damaged, that is missing between others, or that has a version which this
// program does not know ends the call with an Internal error that names it; a
// container of another version is refused when the store is opened. What a
// backend dropped because of its age is reported as Gone by whoever reads from
// before it.
package store

import (
	"context"
	"iter"
	"time"
)

// Bounds that hold for every backend.
const (
	MaxAppend = 512 << 10 // bytes of all records of one append
	MaxValue  = 512 << 10 // bytes of a value
	MaxBlob   = 64 << 20  // bytes of a blob
	MaxName   = 200       // bytes of a log's name, a key, a space or an id
)

// Any as expected revision stands for any, present or not.
const Any int64 = -1

// Store is one backend.
type Store interface {
	Logs
	Changer
	Values
	Blobs
	// Close frees the backend. Watches end with an error; later calls fail
	// with Unavailable. It may be called twice.
	Close() error
}

// Logs are append-only. Names are dot-separated words, see [CheckName]. A log
// that nobody has appended to is empty and has position 0.
type Logs interface {
	// Append adds one message of one or more records, together at most
	// MaxAppend bytes, if the log is at the expected position, and returns its
	// new position. Else it fails with Conflict; after End, with Gone. Id is
	// the append's own, a random name: who does not know whether an append of
	// its own succeeded finds the id in the log, see [AppendSettled]. Append
	// itself does not look for earlier uses. It keeps copies of the records.
	Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error)
	// Read yields the messages after position from (0: all) up to the last one
	// that there is when the iteration begins. After an error it yields nothing
	// more; the error is Gone when the message after from was dropped.
	Read(ctx context.Context, log string, from int64) iter.Seq2[Message, error]
	// Watch yields like Read and then waits for further messages. It ends
	// without an error after the last message of an ended log, else with the
	// context's, or Unavailable when the store is closed. A backend that does
	// not answer is waited for. The log need not exist yet.
	Watch(ctx context.Context, log string, from int64) iter.Seq2[Message, error]
	// List returns the names of the logs that begin with the prefix and have
	// messages, sorted. The empty prefix stands for all.
	List(ctx context.Context, prefix string) ([]string, error)
	// End says that nothing will be appended any more. From then on a backend
	// may drop the log, with the blobs in the space of its name; it documents
	// when. Ending an ended or an empty log is no error.
	End(ctx context.Context, log string) error
}

// Message is what one append wrote. Its records belong to the store and must
// not be changed.
type Message struct {
	Position int64
	ID       string
	Records  [][]byte
}

// Values are small and have revisions. A revision is above 0, grows with every
// change of its key and is never used again, not even after a deletion.
type Values interface {
	// Get returns a copy of the value, or NotFound.
	Get(ctx context.Context, key string) (Value, error)
	// Put sets the value if the key is at the expected revision (0: absent;
	// Any) and returns the new revision; else Conflict. The value expires
	// after ttl; 0 keeps it. An expired value is an absent one. It keeps a
	// copy of data, at most MaxValue bytes.
	Put(ctx context.Context, key string, data []byte, expected int64, ttl time.Duration) (int64, error)
	// Delete removes the value if it is at the expected revision, else
	// Conflict. With Any, deleting what is absent is no error.
	Delete(ctx context.Context, key string, expected int64) error
	// Keys returns the keys that begin with the prefix and have a value, sorted.
	// The empty prefix stands for all.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Value is a value at one of its revisions.
type Value struct {
	Data     []byte
	Revision int64
}

// Blobs are immutable and named by the SHA-256 of their bytes, 64 lower-case
// hex digits, within a space: two spaces with equal content do not share its
// deletion.
type Blobs interface {
	// PutBlob stores a copy of data, at most MaxBlob bytes, and returns its
	// digest. Storing it again is no error.
	PutBlob(ctx context.Context, space string, data []byte) (string, error)
	// Blob returns a copy of the content, which matches the digest, or
	// NotFound.
	Blob(ctx context.Context, space, digest string) ([]byte, error)
	// DeleteBlob removes one blob; removing what is absent is no error.
	// Afterwards its bytes are not readable in the backend's files; a backend
	// documents what takes longer.
	DeleteBlob(ctx context.Context, space, digest string) error
	// DropSpace removes every blob of a space, each like DeleteBlob. Spaces
	// whose names only begin with this one are others.
	DropSpace(ctx context.Context, space string) error
}
