package compare

import (
	"maps"

	"weir/cmd/weir/internal/compare/stat"
	"weir/cmd/weir/internal/compare/suite"
)

// File is the result file of one agent and one suite, as an evaluator writes it
// (11.5).
type File struct {
	GeneratedAt    string             `json:"generated_at"`
	Mode           string             `json:"mode"`
	Suite          suite.Kind         `json:"suite"`
	RunID          string             `json:"run_id"`
	RequiredMetric string             `json:"required_metric"`
	RequiredValue  float64            `json:"required_value"`
	FailThreshold  float64            `json:"fail_threshold"`
	Passed         *bool              `json:"passed"`
	Provenance     Provenance         `json:"provenance"`
	Metrics        map[string]float64 `json:"metrics"`
	Latency        stat.Summary       `json:"latency"`
}

// Files are the result files of side "a" or "b".
func (r *Result) Files(side string) []File {
	var files []File
	for _, s := range r.Suites {
		one, provenance := s.A, r.Provenance.A
		if side == "b" {
			one, provenance = s.B, r.Provenance.B
		}
		files = append(files, File{
			GeneratedAt: r.GeneratedAt, Mode: r.Mode, Suite: s.Suite, RunID: r.RunID, RequiredMetric: s.RequiredMetric,
			RequiredValue: one.Metrics[s.RequiredMetric], FailThreshold: s.FailThreshold, Passed: one.Passed,
			Provenance: provenance, Metrics: maps.Clone(one.Metrics), Latency: one.Latency,
		})
	}
	return files
}
