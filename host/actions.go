package host

import (
	"maps"
	"slices"

	"weir/host/approval"
	"weir/host/config"
)

// actionsOf makes the catalog of the declared actions. Those that are not
// enabled are checked as well, so that switching one on finds no mistake.
func actionsOf(cfg *config.Config) (*approval.Catalog, error) {
	opts := approval.Options{Taken: cfg.Tools.MCP.Include}
	var all, declared []approval.Action
	for _, name := range slices.Sorted(maps.Keys(cfg.Actions)) {
		a := actionOf(name, cfg.Actions[name])
		all = append(all, a)
		if cfg.Actions[name].Enabled {
			declared = append(declared, a)
		}
	}
	if _, err := approval.New(all, opts); err != nil {
		return nil, err
	}
	return approval.New(declared, opts)
}

func actionOf(tool string, a config.Action) approval.Action {
	return approval.Action{
		Tool:        tool,
		Name:        a.Action,
		Description: a.Description,
		Arguments:   approval.Arguments(a.Arguments),
		Hints:       approval.Arguments(a.Hints),
		Choices:     a.Choices,
		MaxSummary:  a.MaxSummary,
		MaxNote:     a.MaxNote,
		Rationale:   a.Rationale,
		TTL:         a.TokenTTL,
		Texts:       approval.Texts(a.Texts),
	}
}
