package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Backends of the store.
const (
	BackendMemory    = "memory"
	BackendJetStream = "jetstream"
)

// What stays of a run's content after its end.
const (
	ContentFull   = "full"
	ContentDigest = "digest"
)

// Store is [store]: where run logs are kept. Restart.
type Store struct {
	// Backend is "memory", the default, whose logs end with the process, or
	// "jetstream": then runs that wait for a person outlive it.
	Backend string `toml:"backend"`
	// KeepEnded is how many logs of ended runs the memory backend keeps.
	// Default 100; 0 keeps none.
	KeepEnded int `toml:"keep_ended"`
	// Dir is the state directory, WEIR_STATE_DIR: the files of the server that
	// runs in this process. Default "state"; see [Config.StateDir]. It belongs
	// to one process.
	Dir string `toml:"dir"`
	// URL of a NATS server or cluster, nats:// or tls://, several with commas.
	// Default empty: the server runs in this process and listens nowhere.
	URL string `toml:"url"`
	// Credentials is the path of a NATS credentials file. Default none.
	Credentials string `toml:"credentials"`
	// TLSCA, TLSCert and TLSKey are paths of PEM files for the connection to
	// url, or between the servers of a cluster: who signed the other side's
	// certificate (default: the system's authorities), and the own certificate
	// and key.
	TLSCA   string `toml:"tls_ca"`
	TLSCert string `toml:"tls_cert"`
	TLSKey  string `toml:"tls_key"`
	// Replicas is how many servers keep each log: 1, the default, 3 or 5. 1
	// loses what the one server loses; more needs as many servers.
	Replicas int `toml:"replicas"`
	// Retention is how long logs stay. Default 720h, at least 1h and twice
	// [approvals] timeout: a log has to outlive its run and the tokens that it
	// tells of.
	Retention time.Duration `toml:"retention"`
	// Content is what stays of a run's texts after its end: "full", the
	// default, keeps what passed the guards, "digest" keeps none.
	Content string `toml:"content"`
	// Sync is how long the server in this process may leave what was appended
	// to the operating system. Default 0s: it is on the disk before an append
	// is acknowledged. At most 1m; that is several times faster and loses as
	// much when the machine, not the process, dies.
	Sync time.Duration `toml:"sync"`
	// MaxBytes is how much the server in this process stores. Default 16GiB, at
	// least 64MiB; at the limit runs fail.
	MaxBytes Size `toml:"max_bytes"`
	// Cluster joins servers inside processes.
	Cluster Cluster `toml:"cluster"`
}

// Cluster is [store.cluster]: the server in this process as one of several.
type Cluster struct {
	// Name is the same for all. Default empty: no cluster.
	Name string `toml:"name"`
	// Server is this one's own name, unique and lasting.
	Server string `toml:"server"`
	// Listen is host:port for the other servers.
	Listen string `toml:"listen"`
	// Routes are the other servers, nats-route://host:port with commas.
	Routes string `toml:"routes"`
	// User and WEIR_STORE_CLUSTER_PASSWORD are what the servers show each
	// other, the same for all; beyond loopback they are required.
	User     string `toml:"user"`
	Password Secret `toml:"-"`
}

// URLs lists the addresses of url; none: the server runs in this process.
func (s *Store) URLs() []string { return listed(s.URL) }

// Alone tells whether no other process can use the store.
func (s *Store) Alone() bool { return len(s.URLs()) == 0 && s.Cluster.Name == "" }

// RouteURLs lists the addresses of routes.
func (c *Cluster) RouteURLs() []string { return listed(c.Routes) }

func listed(text string) []string {
	if blank(text) {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// StateDir is the state directory's path. It is not resolved where it stands, so
// that the configuration is the same wherever its file lies.
func (c *Config) StateDir() string { return c.resolvePath(c.Store.Dir) }

func (k checker) store() {
	s := &k.c.Store
	k.key(s.Backend == BackendMemory || s.Backend == BackendJetStream, "store.backend", `expected "memory" or "jetstream", got %q`, shorten(s.Backend))
	k.key(s.KeepEnded >= 0, "store.keep_ended", "expected a number that is not negative, got %d", s.KeepEnded)
	k.key(!blank(s.Dir), "store.dir", "expected a folder")
	k.key(addresses(s.URLs(), "nats", "tls"), "store.url", "expected nats:// or tls:// URLs with a host, without user and password, separated by commas")
	external, cluster := len(s.URLs()) > 0, s.Cluster.Name != ""
	k.key(s.Credentials == "" || external, "store.credentials", "expected only with url: a server in this process needs none")
	for _, f := range [...]struct{ key, path string }{{"tls_ca", s.TLSCA}, {"tls_cert", s.TLSCert}, {"tls_key", s.TLSKey}} {
		k.key(f.path == "" || external || cluster, "store."+f.key, "expected only with url or a cluster: a server in this process needs none")
	}
	k.key((s.TLSCert == "") == (s.TLSKey == ""), "store.tls_key", "expected tls_cert and tls_key together")
	k.key(slices.Contains([]int{1, 3, 5}, s.Replicas), "store.replicas", "expected 1, 3 or 5, got %d", s.Replicas)
	k.key(s.Replicas == 1 || external || cluster, "store.replicas", "expected 1 for a server in this process that is alone")
	k.key(s.Retention >= time.Hour, "store.retention", "expected at least 1h, got %s", s.Retention)
	k.key(s.Retention >= 2*k.c.Approvals.Timeout, "store.retention", "expected at least twice [approvals] timeout: a question must not outlive its log")
	k.key(s.Content == ContentFull || s.Content == ContentDigest, "store.content", `expected "full" or "digest", got %q`, shorten(s.Content))
	k.between("store.sync", s.Sync, 0, time.Minute)
	k.key(s.MaxBytes >= 64*MiB, "store.max_bytes", "expected at least 64MiB, got %s", s.MaxBytes)
	k.cluster(&s.Cluster, external)
}

func (k checker) cluster(c *Cluster, external bool) {
	k.key(k.keyless || c.User == "" || c.Password.Set(), "store.cluster.user", "expected WEIR_STORE_CLUSTER_PASSWORD beside a user")
	if c.Name == "" {
		k.key(c.Server == "" && c.Listen == "" && c.Routes == "" && c.User == "", "store.cluster.name", "expected a name: the table has other keys")
		return
	}
	k.key(agentName.MatchString(c.Name), "store.cluster.name", "expected a name of a-z, 0-9 and -, at most 63, got %q", shorten(c.Name))
	k.key(!external, "store.cluster.name", "expected no cluster where url names a server elsewhere")
	k.key(agentName.MatchString(c.Server), "store.cluster.server", "expected a name of a-z, 0-9 and -, at most 63, got %q", shorten(c.Server))
	k.key(socketAddress(c.Listen), "store.cluster.listen", "expected host:port with a port up to 65535, got %q", shorten(c.Listen))
	k.key(addresses(c.RouteURLs(), "nats-route", "nats"), "store.cluster.routes", "expected nats-route:// URLs with a host, without user and password, separated by commas")
	k.key(c.User != "" || loopback(c.Listen), "store.cluster.user", "expected a user, and WEIR_STORE_CLUSTER_PASSWORD: %s can be reached from other machines", shorten(c.Listen))
}

// addresses checks URLs that name a server and nothing else. A password in one
// could be quoted later.
func addresses(list []string, schemes ...string) bool {
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || u.User != nil ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return false
		}
	}
	return true
}

func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// warnStore tells of what a store loses.
func (k checker) warnStore() {
	if k.c.ApprovalsOn() && k.c.Store.Backend == BackendMemory {
		k.c.warn(fmt.Sprintf("%s: [store] backend: with %q a restart loses every question that waits for a person", k.c.file(), BackendMemory))
	}
}
