package harness

// A Result is what a run came to. It is also what --json prints.
type Result struct {
	RunID        string   `json:"run_id"`
	Scenario     string   `json:"scenario"`
	ScenarioName string   `json:"scenario_name"`
	Agent        string   `json:"agent"` // its address
	AgentName    string   `json:"agent_name"`
	Protocol     string   `json:"protocol"`
	Passed       bool     `json:"passed"`
	Status       string   `json:"status"` // success, failure, cancelled
	Attempts     int      `json:"total_attempts"`
	Successful   int      `json:"successful_attempts"`
	PassRate     float64  `json:"pass_rate"`
	PassAtK      float64  `json:"pass_at_k"` // 1 if any attempt succeeded
	Hashes       Hashes   `json:"hashes"`
	Tries        []Try    `json:"attempts"`
	Notices      []string `json:"notices,omitempty"`
	Oddities     []string `json:"oddities,omitempty"` // forms that fail in AgentV's harness
	Ledger       string   `json:"ledger"`
	Head         string   `json:"head"` // digest of the ledger's last line
}

// Hashes tie a ledger to what was run.
type Hashes struct {
	Topology     string `json:"topology_hash"`
	Tools        string `json:"tool_dna_hash"`
	Provisioning string `json:"provisioning_hash"`
	Fingerprint  string `json:"fingerprint_v1"`
}

// A Try is one attempt.
type Try struct {
	Attempt int          `json:"attempt"`
	Success bool         `json:"success"`
	Nodes   []Node       `json:"nodes"`
	Metrics []Evaluation `json:"metrics,omitempty"` // of the whole attempt
}

// A Node is what became of one task.
type Node struct {
	ID      string       `json:"id"`
	Success bool         `json:"success"`
	Turns   int          `json:"turns"`
	Millis  int64        `json:"ms"`
	Tools   []string     `json:"tools,omitempty"` // in the order of calls
	Metrics []Evaluation `json:"metrics,omitempty"`
	Reasons []string     `json:"reasons,omitempty"` // why it failed
}

// An Evaluation is a metric's value.
type Evaluation struct {
	Metric    string  `json:"metric"`
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Success   bool    `json:"success"`
}
