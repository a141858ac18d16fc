package host_test

import (
	"net/http"
	"strings"
	"testing"

	"weir/host"
	"weir/host/admin"
	"weir/host/hosttest"
)

// DECISIONS 4: the admin listener is there with its key only, and the main
// listener knows none of its paths.
func TestAdminListener(t *testing.T) {
	if w := hosttest.Start(t, hosttest.Options{}); w.Host.AdminAddr() != "" {
		t.Errorf("without a key it listens on %s", w.Host.AdminAddr())
	}
	w := hosttest.Start(t, hosttest.Options{Config: "[admin]\nlisten = '127.0.0.1:0'\n",
		Env: map[string]string{"WEIR_ADMIN_KEY": hosttest.AdminKey}})
	client := admin.NewClient("tcp", w.Host.AdminAddr(), hosttest.AdminKey)
	first := w.Host.Status().Active.Generation
	w.Variant(t, "b")
	reply, err := client.Reload(t.Context())
	if err != nil || reply.Outcome != host.OutcomeSwapped || reply.Status.Active.Generation == first || reply.Status.Previous != first ||
		len(reply.Status.Active.Plugins) != 2 || reply.Status.Wanted.Trigger != host.TriggerAdmin {
		t.Errorf("reload: %+v, %v", reply, err)
	}
	reply, err = client.Rollback(t.Context())
	if err != nil || reply.Outcome != host.OutcomeSwapped || reply.Status.Active.Generation != first || ask(t, w).Text != "answer-a" {
		t.Errorf("rollback: %+v, %v", reply, err)
	}
	w.WriteFile(t, "plugins/flow.wasm", []byte("x"))
	reply, err = client.Reload(t.Context())
	if err != nil || reply.Outcome != host.OutcomeFailed || !strings.HasPrefix(reply.Error, "plugin flow: ") || reply.Status.InSync {
		t.Errorf("a refused reload: %+v, %v", reply, err)
	}
	for _, path := range []string{admin.PathReload, admin.PathRollback, admin.PathStatus} {
		for _, key := range []string{hosttest.ServiceKey, hosttest.AdminKey} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("x-authenticated-user-id", "someone")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if want := map[string]int{hosttest.ServiceKey: 404, hosttest.AdminKey: 401}[key]; resp.StatusCode != want {
				t.Errorf("the main listener's %s: %d, want %d", path, resp.StatusCode, want)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
