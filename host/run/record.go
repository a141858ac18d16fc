package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// RecordVersion is the version of the records' layout. A reader that meets
// another one refuses it by name.
const RecordVersion = 1

// Kinds of record, in the order in which they can first appear.
const (
	RecordRunStarted = "run_started"
	RecordEvent      = "event"
	RecordAction     = "action"
	RecordDecision   = "decision"
	RecordReleased   = "released"
	RecordRunEnded   = "run_ended"
)

// Header is a record without its payload. The chain runs over headers:
// Previous is the SHA-256 of the header before it, as it was written, so
// payloads can be deleted and the chain still verifies.
type Header struct {
	Version    int    `json:"version"`
	Run        string `json:"run"`
	N          int    `json:"n"` // 1, 2, 3 …
	Epoch      int    `json:"epoch"`
	Kind       string `json:"kind"`
	Time       int64  `json:"time"` // milliseconds
	Previous   string `json:"previous"`
	Payload    string `json:"payload"` // SHA-256 of the payload's bytes
	Generation string `json:"generation"`
}

// Record is a header and, while it is kept, the payload that it names: beside
// it, or when that is large a blob in the space of the log's name.
type Record struct {
	Header  json.RawMessage `json:"header"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Blob    bool            `json:"blob,omitempty"`
}

// journal collects the records of one run until they are appended.
type journal struct {
	run        string
	generation string
	now        func() time.Time
	records    []Record
	kept       []bool // whether the payload stays after the run's end
	previous   string
}

// add puts one record at the end. Payload must marshal; kept says that its
// payload holds nothing that a guard would have changed.
func (j *journal) add(kind string, payload any, kept bool) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	header, err := json.Marshal(Header{
		Version: RecordVersion, Run: j.run, N: len(j.records) + 1, Epoch: 1, Kind: kind,
		Time: j.now().UnixMilli(), Previous: j.previous, Payload: digest(body), Generation: j.generation,
	})
	if err != nil {
		return err
	}
	j.previous = digest(header)
	j.records = append(j.records, Record{Header: header, Payload: body})
	j.kept = append(j.kept, kept)
	return nil
}

// digest is a SHA-256 in lower-case hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
