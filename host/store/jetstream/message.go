package jetstream

import (
	"encoding/binary"
	"strconv"

	"github.com/nats-io/nats.go"

	"weir/host/store"
)

// Headers of messages.
const (
	headerVersion  = "Weir-Version"
	headerPosition = "Weir-Position" // in a log: of this message; of one before an end
	headerID       = "Weir-Id"
	headerEnd      = "Weir-End"     // the log has ended; the message counts for no position
	headerDeleted  = "Weir-Deleted" // of a value
	headerLife     = "Weir-Life"    // of a value: milliseconds from the message's time on
	headerParts    = "Weir-Parts"   // of a blob

	headerExpected = "Nats-Expected-Last-Subject-Sequence"
	headerTTL      = "Nats-TTL" // whole seconds, after which the server drops the message
)

func newMsg(subject string, data []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = data
	m.Header.Set(headerVersion, strconv.Itoa(version))
	return m
}

// newMsgAfter returns a message that is stored only if the subject's last
// sequence is the expected one; 0 stands for none.
func newMsgAfter(expected uint64, subject string, data []byte) *nats.Msg {
	m := newMsg(subject, data)
	m.Header.Set(headerExpected, strconv.FormatUint(expected, 10))
	return m
}

// entry is a message of a log.
type entry struct {
	store.Message
	seq uint64
	end bool // nothing but the end; at least its position was reached before it
}

// decodeEntry reads a message of a log.
func decodeEntry(m stored) (entry, error) {
	if err := m.checkVersion(); err != nil {
		return entry{}, err
	}
	e := entry{seq: m.seq, end: m.header.Get(headerEnd) != ""}
	var err error
	if e.Position, err = strconv.ParseInt(m.header.Get(headerPosition), 10, 64); err != nil || e.Position < 1 {
		return entry{}, unreadable(m.subject, m.seq, "it has no position")
	}
	if e.end {
		return e, nil
	}
	if e.ID = m.header.Get(headerID); e.ID == "" {
		return entry{}, unreadable(m.subject, m.seq, "it has no id")
	}
	records, ok := decodeRecords(m.data)
	if !ok {
		return entry{}, unreadable(m.subject, m.seq, "its records are cut")
	}
	e.Records = records
	return e, nil
}

// encodeRecords writes, for each record, its length and its bytes.
func encodeRecords(records [][]byte) []byte {
	size := 0
	for _, r := range records {
		size += len(r) + binary.MaxVarintLen32
	}
	data := make([]byte, 0, size)
	for _, r := range records {
		data = binary.AppendUvarint(data, uint64(len(r)))
		data = append(data, r...)
	}
	return data
}

// decodeRecords returns slices of data; there is at least one record.
func decodeRecords(data []byte) ([][]byte, bool) {
	var records [][]byte
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, false
		}
		end := n + int(size)
		records = append(records, data[n:end:end])
		data = data[end:]
	}
	return records, len(records) > 0
}
