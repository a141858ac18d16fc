package jetstream_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/storetest"
)

// docs/operations.md lists the permissions that an account needs. With these,
// and no others, everything works.
func TestPermissions(t *testing.T) {
	publish, subscribe := documented(t)
	opts := jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}, Timeout: 2 * time.Second}
	storetest.Run(t, storetest.Backend{
		RealTime: true,
		Open: func(t *testing.T) store.Store {
			srv := serve(t, func(o *server.Options) {
				o.Users = []*server.User{{Username: "weir", Password: "correct", Permissions: &server.Permissions{
					Publish:   &server.SubjectPermission{Allow: publish},
					Subscribe: &server.SubjectPermission{Allow: subscribe},
				}}}
			})
			o := opts
			o.URLs = []string{srv.Addr().String()}
			return open(t, o)
		},
	})
}

func documented(t *testing.T) (publish, subscribe []string) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(data), "```\npublish:")
	block, _, _ = strings.Cut(block, "```")
	first, second, found := strings.Cut(block, "subscribe:")
	if !found {
		t.Fatal("the list of permissions is not found")
	}
	for _, subject := range strings.Fields(first) {
		// The server's wildcards stand for whole words.
		if head, all := strings.CutSuffix(subject, "weir_1_*"); all {
			for _, kind := range []string{"log", "value", "key", "blob"} {
				publish = append(publish, head+"weir_1_"+kind)
			}
			continue
		}
		publish = append(publish, subject)
	}
	return publish, strings.Fields(second)
}
