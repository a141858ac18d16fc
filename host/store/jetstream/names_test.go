package jetstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/jetstream"
)

func streams(t *testing.T, s *jetstream.Store) js.JetStream {
	t.Helper()
	out, err := js.New(s.Conn())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Streams of another version are refused by name, also beside known ones.
func TestUnknownVersions(t *testing.T) {
	srv := serve(t, nil)
	opts := jetstream.Options{URLs: []string{srv.Addr().String()}, Log: quiet()}
	s := open(t, opts)
	other, err := streams(t, s).CreateStream(t.Context(), js.StreamConfig{Name: "weirdo_2_log", Subjects: []string{"weirdo"}})
	if err != nil {
		t.Fatal(err)
	}
	open(t, opts) // somebody else's
	_ = other
	if _, err := streams(t, s).CreateStream(t.Context(), js.StreamConfig{Name: "weir_2_log", Subjects: []string{"weir.2.log.>"}}); err != nil {
		t.Fatal(err)
	}
	_, err = jetstream.Open(t.Context(), opts)
	if fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), "weir_2_log") {
		t.Errorf("open beside another version: %v, want kind internal that names it", err)
	}
}

// A stream that does not keep what the store promises is refused by name; what
// is for those who run NATS is theirs.
func TestChangedStreams(t *testing.T) {
	for _, c := range []struct {
		name   string
		config js.StreamConfig
		says   string
	}{
		{"deletions allowed", js.StreamConfig{Name: "weir_1_log", Subjects: []string{"weir.1.log.>"}, Metadata: map[string]string{"weir.version": "1"}}, "deleting"},
		{"another subject", js.StreamConfig{Name: "weir_1_log", Subjects: []string{"weir.1.logs.>"}, Metadata: map[string]string{"weir.version": "1"}}, "subjects"},
		{"no version", js.StreamConfig{Name: "weir_1_log", Subjects: []string{"weir.1.log.>"}}, "version"},
		{"in memory", js.StreamConfig{Name: "weir_1_value", Subjects: []string{"weir.1.value.>"}, Storage: js.MemoryStorage, Metadata: map[string]string{"weir.version": "1"}}, "storage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := serve(t, nil)
			conn, err := nats.Connect(srv.ClientURL())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			api, err := js.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := api.CreateStream(t.Context(), c.config); err != nil {
				t.Fatal(err)
			}
			_, err = jetstream.Open(t.Context(), jetstream.Options{URLs: []string{srv.Addr().String()}, Log: quiet()})
			if fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), c.config.Name) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("open: %v, want kind internal that names %s and %s", err, c.config.Name, c.says)
			}
		})
	}
	srv := serve(t, nil)
	opts := jetstream.Options{URLs: []string{srv.Addr().String()}, Log: quiet()}
	s := open(t, opts)
	log, err := streams(t, s).Stream(t.Context(), "weir_1_log")
	if err != nil {
		t.Fatal(err)
	}
	config := log.CachedInfo().Config
	config.Description, config.MaxBytes = "ours", 1<<30
	if _, err := streams(t, s).UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	opts.MaxAge = 24 * time.Hour
	open(t, opts)
	info, err := log.Info(t.Context())
	if err != nil || info.Config.MaxAge != opts.MaxAge || info.Config.Description != "ours" || info.Config.MaxBytes != 1<<30 {
		t.Errorf("after opening with another age: %+v, %v", info.Config, err)
	}
}

// What cannot be read is an error that names it, never skipped.
func TestUnreadable(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir()})
	api := streams(t, s)
	add := func(subject string, data string, header ...string) {
		t.Helper()
		m := nats.NewMsg(subject)
		m.Data = []byte(data)
		for i := 0; i < len(header); i += 2 {
			m.Header.Set(header[i], header[i+1])
		}
		if _, err := api.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for log, last := range map[string]func(subject string){
		"foreign":   func(subject string) { add(subject, "hello") },
		"version":   func(subject string) { add(subject, "\x01x", "Weir-Version", "2", "Weir-Position", "2", "Weir-Id", "i") },
		"positions": func(subject string) { add(subject, "\x01x", "Weir-Version", "1", "Weir-Position", "x", "Weir-Id", "i") },
		"ids":       func(subject string) { add(subject, "\x01x", "Weir-Version", "1", "Weir-Position", "2") },
		"records":   func(subject string) { add(subject, "\x05x", "Weir-Version", "1", "Weir-Position", "2", "Weir-Id", "i") },
		"gaps":      func(subject string) { add(subject, "\x01x", "Weir-Version", "1", "Weir-Position", "4", "Weir-Id", "i") },
	} {
		if _, err := s.Append(t.Context(), log, 0, "i", [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		last("weir.1.log." + log)
		var failed error
		for _, err := range s.Read(t.Context(), log, 0) {
			failed = err
		}
		if fault.Of(failed) != fault.Internal || failed == nil || !strings.Contains(failed.Error(), log) {
			t.Errorf("%s: read ends with %v, want an internal error that names the log", log, failed)
		}
		for _, err := range s.Watch(t.Context(), log, 0) {
			if failed = err; err != nil {
				break
			}
		}
		if fault.Of(failed) != fault.Internal || failed == nil {
			t.Errorf("%s: watch ends with %v, want an internal error", log, failed)
		}
	}
	add("weir.1.value.k", "x", "Weir-Version", "7")
	if _, err := s.Get(t.Context(), "k"); fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), "weir.1.value.k") || !strings.Contains(err.Error(), `"7"`) {
		t.Errorf("get of another version: %v", err)
	}
	digest, err := s.PutBlob(t.Context(), "space", make([]byte, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := api.Stream(t.Context(), "weir_1_blob")
	if err != nil {
		t.Fatal(err)
	}
	if err := blobs.DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), "space", digest); fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), "part 3") {
		t.Errorf("a blob without one of its parts: %v", err)
	}
}

// The audit stream cannot be changed, not even by who has its connection.
func TestAuditStream(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir()})
	if _, err := s.Append(t.Context(), "runs.a", 0, "i", [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "k", nil, store.Any, 0); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]bool{"weir_1_log": true, "weir_1_value": false} { // the second is the control
		stream, err := streams(t, s).Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"delete": stream.DeleteMsg(t.Context(), 1),
			"erase":  stream.SecureDeleteMsg(t.Context(), 1),
			"purge":  stream.Purge(t.Context()),
		} {
			if what == "erase" && !refused {
				continue // it is deleted already
			}
			if (err != nil) != refused {
				t.Errorf("%s in %s: %v, refused should be %v", what, name, err, refused)
			}
		}
	}
	if got := positions(t, s, "runs.a"); len(got) != 1 {
		t.Errorf("positions %v, want one", got)
	}
}
