package jetstream

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/host/fault"
)

// version is that of the streams, their subjects and the messages in them.
const version = 1

// What there is a stream for.
const (
	kindLog   = "log"
	kindLate  = "late" // logs that reach the disk a moment later
	kindValue = "value"
	kindKey   = "key"
	kindBlob  = "blob"
	kindNote  = "note" // no stream: the notes of what was committed to a log
)

// names makes the names of streams and subjects.
type names struct {
	prefix string
	late   string // how the logs of kindLate begin; empty: there are none
}

func (n names) stream(kind string) string { return n.prefix + "_" + strconv.Itoa(version) + "_" + kind }

func (n names) streams() []string {
	names := []string{n.stream(kindLog), n.stream(kindValue), n.stream(kindKey), n.stream(kindBlob)}
	if n.late != "" {
		names = append(names, n.stream(kindLate))
	}
	return names
}

// ofLog is the kind of a log.
func (n names) ofLog(log string) string {
	if n.late != "" && strings.HasPrefix(log, n.late) {
		return kindLate
	}
	return kindLog
}

// ofLogs are the kinds of the logs that begin with a prefix.
func (n names) ofLogs(prefix string) []string {
	if n.late != "" && !strings.HasPrefix(prefix, n.late) && strings.HasPrefix(n.late, prefix) {
		return []string{kindLog, kindLate}
	}
	return []string{n.ofLog(prefix)}
}

// subject returns the subject of a name; rest may have wildcards.
func (n names) subject(kind, rest string) string {
	return n.prefix + "." + strconv.Itoa(version) + "." + kind + "." + rest
}

var streamForm = regexp.MustCompile(`^_(\d+)_[a-z]+$`)

// checkVersions refuses streams that another program made: it would neither see
// what is in them nor know what it may leave out.
func (s *Store) checkVersions(ctx context.Context) error {
	found, err := s.streamNames(ctx)
	if err != nil {
		return err
	}
	known := s.name.streams()
	for _, name := range found {
		rest, ours := trimPrefix(name, s.opts.Prefix)
		if !ours || slices.Contains(known, name) {
			continue
		}
		if name == s.name.stream(kindLate) {
			return fault.New(fault.Internal, "found the stream %s, of late logs: this store was opened without any", name)
		}
		if m := streamForm.FindStringSubmatch(rest); m != nil {
			return fault.New(fault.Internal, "found the stream %s, of version %s: this program knows version %d", name, m[1], version)
		}
	}
	return nil
}

func trimPrefix(name, prefix string) (string, bool) {
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return "", false
	}
	return name[len(prefix):], true
}

// configs returns the streams as they should be.
func (s *Store) configs() []jetstream.StreamConfig {
	value := s.config(kindValue, "values")
	value.MaxMsgsPerSubject = 1
	configs := []jetstream.StreamConfig{
		s.logConfig(kindLog, "logs, which are the audit trail: appended to, never changed"),
		value,
		s.config(kindKey, "the keys of blob spaces"),
		s.config(kindBlob, "encrypted blobs in parts"),
	}
	if s.name.late != "" {
		late := s.logConfig(kindLate, "logs that reach the disk a moment after they were acknowledged")
		late.PersistMode = jetstream.AsyncPersistMode
		configs = append(configs, late)
	}
	return configs
}

func (s *Store) logConfig(kind, description string) jetstream.StreamConfig {
	log := s.config(kind, description)
	log.DenyDelete, log.DenyPurge = true, true
	log.MaxAge = max(s.opts.MaxAge, 0)
	log.AllowMsgTTL = false
	log.RePublish = &jetstream.RePublish{
		Source:      s.name.subject(kind, ">"),
		Destination: s.name.subject(kindNote, ">"),
		HeadersOnly: true,
	}
	return log
}

func (s *Store) config(kind, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              s.name.stream(kind),
		Description:       "weir: " + description,
		Subjects:          []string{s.name.subject(kind, ">")},
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: -1,
		Replicas:          s.opts.Replicas,
		AllowDirect:       true,
		AllowMsgTTL:       true,
		Duplicates:        duplicates(s.opts.MaxAge),
		Metadata:          map[string]string{"weir.version": strconv.Itoa(version)},
	}
}

// duplicates is the server's window for its own de-duplication, which is not
// used: no message has the header for it. It may not exceed the greatest age.
func duplicates(maxAge time.Duration) time.Duration {
	if maxAge > 0 {
		return min(maxAge, 2*time.Minute)
	}
	return 2 * time.Minute
}

// makeStreams makes the streams that are not there, and gives those that are
// the age and the replicas of the options. In a cluster that is just starting
// it waits for a majority.
func (s *Store) makeStreams(ctx context.Context) error {
	js, err := jetstream.New(s.conn, jetstream.WithDefaultTimeout(s.opts.Timeout))
	if err != nil {
		return fault.New(fault.Internal, "%w", err)
	}
	for _, config := range s.configs() {
		err := s.insist(ctx, func(ctx context.Context) error { return makeStream(ctx, js, config) })
		if err != nil {
			return err
		}
	}
	return nil
}

func makeStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // somebody else was first, with other options
			stream, err = js.Stream(ctx, want.Name)
		} else {
			return wrapped(ctx, "make the stream "+want.Name, err)
		}
	}
	if err != nil {
		return wrapped(ctx, "look at the stream "+want.Name, err)
	}
	have := stream.CachedInfo().Config
	if err := sameStream(have, want); err != nil {
		return err
	}
	if have.MaxAge == want.MaxAge && have.Replicas >= want.Replicas {
		return nil
	}
	have.MaxAge, have.Duplicates, have.Replicas = want.MaxAge, want.Duplicates, max(have.Replicas, want.Replicas)
	_, err = js.UpdateStream(ctx, have)
	return wrapped(ctx, "change the stream "+want.Name, err)
}

// sameStream refuses a stream that does not keep what the store promises. What
// it does not look at, such as placement, is for those who run NATS.
func sameStream(have, want jetstream.StreamConfig) error {
	bad := func(what string, expected, found any) error {
		return fault.New(fault.Internal, "the stream %s: expected %s %v, found %v", want.Name, what, expected, found)
	}
	switch key := "weir.version"; {
	case have.Metadata[key] != want.Metadata[key]:
		return bad("version", want.Metadata[key], strconv.Quote(have.Metadata[key]))
	case !slices.Equal(have.Subjects, want.Subjects):
		return bad("the subjects", want.Subjects, have.Subjects)
	case have.Storage != want.Storage:
		return bad("storage", want.Storage, have.Storage)
	case have.Retention != want.Retention:
		return bad("retention", want.Retention, have.Retention)
	case have.MaxMsgsPerSubject != want.MaxMsgsPerSubject:
		return bad("messages per subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)
	case have.PersistMode != want.PersistMode:
		return bad("that it persists", want.PersistMode, have.PersistMode)
	case have.DenyDelete != want.DenyDelete || have.DenyPurge != want.DenyPurge:
		return bad("that deleting is refused", want.DenyDelete, have.DenyDelete && have.DenyPurge)
	case !have.AllowDirect || have.AllowMsgTTL != want.AllowMsgTTL:
		return bad("direct reads and the ageing of messages", want.AllowMsgTTL, have.AllowMsgTTL)
	case want.RePublish != nil && (have.RePublish == nil || *have.RePublish != *want.RePublish):
		return bad("republishing", *want.RePublish, have.RePublish)
	}
	return nil
}
