package jetstream_test

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
	"weir/host/store/jetstream"
)

// Whatever stands in a log is read as it was written or refused.
func FuzzDecodeEntry(f *testing.F) {
	f.Add("1", "1", "i", "", jetstream.EncodeRecords([][]byte{{1, 2}, nil, []byte("x")}))
	f.Add("1", "7", "", "1", []byte(nil))
	f.Add("2", "1", "i", "", []byte("\x01x"))
	f.Add("1", "-1", "i", "", []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"))
	f.Fuzz(func(t *testing.T, version, position, id, end string, data []byte) {
		header := nats.Header{}
		for k, v := range map[string]string{"Weir-Version": version, "Weir-Position": position, "Weir-Id": id, "Weir-End": end} {
			if v != "" {
				header.Set(k, v)
			}
		}
		at, gotID, records, ended, err := jetstream.DecodeEntry(header, data)
		if err != nil {
			if fault.Of(err) != fault.Internal {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		if version != "1" || at < 1 || ended != (end != "") {
			t.Fatalf("version %q, position %q, end %q were accepted as %d, %v", version, position, end, at, ended)
		}
		if !ended && (gotID != id || len(records) == 0) {
			t.Fatalf("id %q with %d records was accepted as %q", id, len(records), gotID)
		}
		again, ok := jetstream.DecodeRecords(jetstream.EncodeRecords(records))
		if len(records) > 0 && (!ok || !bytes.Equal(bytes.Join(again, []byte{0}), bytes.Join(records, []byte{0}))) {
			t.Fatalf("records %q became %q", records, again)
		}
	})
}
