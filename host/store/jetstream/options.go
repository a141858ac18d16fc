package jetstream

import (
	"log/slog"
	"net"
	"regexp"
	"time"

	"weir/host/fault"
)

// Options of a store. Exactly one of Dir and URLs is needed; the zero value of
// everything else is useful.
type Options struct {
	// Dir is the state directory of a server inside this process. One process
	// at a time may use it; it is made if it is not there. Everything in it
	// belongs to the store.
	Dir string
	// URLs are the servers of a NATS that runs elsewhere, such as
	// "tls://nats-1:4222"; it must be version 2.11 or newer, with JetStream.
	URLs []string
	// Login is for URLs.
	Login Login
	// TLS is for URLs. Without it a "tls://" is verified against the system's
	// authorities.
	TLS TLS
	// Cluster joins the server inside this process with others of its kind;
	// the zero value leaves it alone.
	Cluster Cluster

	// Prefix begins the names of streams and subjects; default "weir". Stores
	// with different prefixes on one NATS do not see each other.
	Prefix string
	// Replicas is how many servers keep each stream: 1 (the default), 3 or 5.
	// An existing stream gets more replicas if it has fewer, never fewer.
	Replicas int
	// MaxAge is how long messages of logs are kept; default 30 days, below 0
	// for ever. It must outlast every run.
	MaxAge time.Duration
	// AgedSpaces is a prefix of the blob spaces that go with the logs: they are
	// dropped a day after MaxAge has passed since their first blob. Empty:
	// blobs stay until they are deleted.
	AgedSpaces string

	// LateLogs is how the names of logs begin that a lone server inside this
	// process writes a moment after it has acknowledged an append, many at a
	// time: a killed process loses what it acknowledged in the last
	// milliseconds, a power failure that of the last second. Elsewhere they are
	// logs like any other. Empty: there are none. A directory is always to be
	// opened with the same.
	LateLogs string

	// SyncEvery is how long the server inside this process may leave what was
	// appended to the operating system before it is synced to the disk. 0, the
	// default, syncs before every acknowledgement. With anything else a power
	// failure loses what was appended in that time; a killed process does not.
	SyncEvery time.Duration
	// MaxBytes is how much the server inside this process stores; default
	// 16 GiB. At the limit appends fail with Limit.
	MaxBytes int64

	// Timeout is how long a call waits for an answer; default 10 s. The
	// context of a call can only shorten it.
	Timeout time.Duration
	// StartTimeout bounds Open, default 30 s, in which a server inside this
	// process reads its files: about a second for 2 GiB.
	StartTimeout time.Duration
	// StopTimeout bounds Close; default 10 s.
	StopTimeout time.Duration
	// Log receives what the server inside this process and the connection have
	// to say; default slog.Default.
	Log *slog.Logger

	// probeEvery is how long lost notes go unnoticed while somebody watches.
	probeEvery time.Duration
}

// Login says who connects. At most one way may be given.
type Login struct {
	User, Password  string
	Token           string
	CredentialsFile string // with a JWT and its seed
	SeedFile        string // with the seed of an nkey
}

// TLS names files in PEM. Certificate and Key come together.
type TLS struct {
	Authorities string // whom the other side must be certified by
	Certificate string
	Key         string
}

// Cluster joins servers inside processes to one JetStream: at least three,
// each with a directory of its own, of which a majority must be up. Besides the
// port for routes such a server has one for clients on loopback, where only this
// process can log in.
type Cluster struct {
	Name   string // the same for all
	Server string // this one's own, unique and lasting
	Listen string // host:port for the others; a port of 0 takes a free one
	// Routes are the others' addresses, such as "nats-route://10.0.0.2:6222";
	// this one's own may be among them.
	Routes []string
	// User and Password are what the servers show each other, the same for
	// all. Beyond loopback they are required.
	User, Password string
	// TLS is used between the servers, both of which are verified. Certificate
	// and Authorities are needed if any is given.
	TLS TLS
}

// lateLogs is LateLogs where it has a meaning.
func (o Options) lateLogs() string {
	if o.Dir == "" || o.Cluster.Name != "" {
		return ""
	}
	return o.LateLogs
}

var prefixForm = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

func (o Options) withDefaults() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = "weir"
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.MaxAge == 0 {
		o.MaxAge = 30 * 24 * time.Hour
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 16 << 30
	}
	for _, d := range []struct {
		d     *time.Duration
		value time.Duration
	}{{&o.Timeout, 10 * time.Second}, {&o.StartTimeout, 30 * time.Second}, {&o.StopTimeout, 10 * time.Second}, {&o.probeEvery, 5 * time.Second}} {
		if *d.d == 0 {
			*d.d = d.value
		}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o, o.validate()
}

func (o Options) validate() error {
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{(o.Dir == "") == (len(o.URLs) == 0), "either a state directory or the addresses of a NATS"},
		{!prefixForm.MatchString(o.Prefix), "a prefix of 1 to 32 letters, digits and '-'"},
		{o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5, "1, 3 or 5 replicas"},
		{o.Replicas > 1 && o.Dir != "" && o.Cluster.Name == "", "a cluster for more than one replica"},
		{o.MaxAge > 0 && o.MaxAge < time.Second, "a greatest age of at least a second"},
		{o.SyncEvery < 0 || o.MaxBytes < 0 || o.Timeout < 0 || o.StartTimeout < 0 || o.StopTimeout < 0, "no negative durations and sizes"},
		{o.Login.ways() > 1, "one way to log in"},
		{(o.Login.User == "") != (o.Login.Password == ""), "a user and a password"},
		{(o.TLS.Certificate == "") != (o.TLS.Key == ""), "a certificate and its key"},
		{o.Dir != "" && (o.Login != Login{} || o.TLS != TLS{}), "no login and no TLS for a server inside this process"},
		{o.Dir == "" && o.Cluster.Name != "", "a state directory for a cluster"},
	} {
		if c.bad {
			return fault.New(fault.Invalid, "store: expected %s", c.text)
		}
	}
	return o.Cluster.validate()
}

func (c Cluster) validate() error {
	if c.Name == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	loopback := host == "localhost" || net.ParseIP(host).IsLoopback()
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{c.Server == "", "a name of this server of the cluster"},
		{err != nil, "host:port where the cluster's others connect"},
		{(c.User == "") != (c.Password == ""), "a user and a password for the cluster"},
		{err == nil && !loopback && c.Password == "", "a password for a cluster beyond loopback"},
		{c.TLS != TLS{} && (c.TLS.Certificate == "" || c.TLS.Key == "" || c.TLS.Authorities == ""), "certificate, key and authorities for the cluster's TLS"},
	} {
		if c.bad {
			return fault.New(fault.Invalid, "store: expected %s", c.text)
		}
	}
	return nil
}

func (l Login) ways() int {
	n := 0
	for _, given := range []bool{l.User != "" || l.Password != "", l.Token != "", l.CredentialsFile != "", l.SeedFile != ""} {
		if given {
			n++
		}
	}
	return n
}
