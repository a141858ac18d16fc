package conform

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Whatever an agent answers as its stream, every clause about streams comes to
// a finding.
func FuzzStream(f *testing.F) {
	good := stream(&http.Request{Header: http.Header{}, URL: mustURL(f)})
	f.Add([]byte(good.body))
	f.Add([]byte("intermediate_data: null\n\nintermediate_data: {\"payload\":null}\n\ndata: 1\n\n{\n\n"))
	f.Add([]byte("event: interaction_required\ndata: {}\n\n:\n\n{\"error\":\"workflow_error\"}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		tr := readTranscript(&answer{status: http.StatusOK, header: good.header, body: body, length: -1})
		s := &subject{Target: Target{URL: "http://agent", Key: key, Ask: "?"}, served: &answer{status: http.StatusBadRequest},
			streams: map[string]*transcript{everyStep: tr, "TOOL_START,TOOL_END": tr, "": tr, " workflow_start ,LLM_START": tr}}
		for _, c := range append(serviceStream(), serviceSteps()...) {
			if got := c.check(t.Context(), s); got.outcome == "" || got.outcome != Passed && got.reason == "" {
				t.Errorf("%s: %+v", c.ID, got)
			}
		}
	})
}

func mustURL(f *testing.F) *httpURL {
	u, err := (&httpURL{Scheme: "http", Host: "agent", Path: pathWorkflow}).Parse("")
	if err != nil {
		f.Fatal(err)
	}
	return u
}

// Whatever stands in a folder, every clause about folders comes to a finding.
func FuzzFolder(f *testing.F) {
	root := filepath.Join("..", "..", "..", "..")
	var seeds [2][]byte
	for i, name := range []string{"k8s/deployment.yaml", "Dockerfile"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			f.Fatal(err)
		}
		seeds[i] = data
	}
	f.Add(seeds[0], seeds[1])
	f.Add([]byte("kind: Deployment\nspec:\n  template:\n    spec:\n      c"), []byte("FROM")) // ends within a word
	f.Add([]byte("kind: Deployment\nspec:\n  template:\n    spec:\n      containers: [{}]\n---\nkind: Service\n"), []byte("FROM\nUSER\nEXPOSE\nCMD ["))
	f.Fuzz(func(t *testing.T, manifests, docker []byte) {
		dir := t.TempDir()
		write(t, dir, k8sFile, string(manifests))
		write(t, dir, "Dockerfile", string(docker))
		write(t, dir, "go.mod", "module x\n\ngo 1.26\n")
		s := &subject{Target: Target{Dir: dir}}
		for _, part := range [][]Clause{platformCode(), platformImage(), platformManifests()} {
			for _, c := range part {
				if got := c.check(t.Context(), s); got.outcome == "" || got.outcome != Passed && got.reason == "" {
					t.Errorf("%s: %+v", c.ID, got)
				}
			}
		}
	})
}
