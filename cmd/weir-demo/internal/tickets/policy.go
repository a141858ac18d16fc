package tickets

import (
	"fmt"
	"slices"
	"strings"

	"weir/cmd/weir-demo/internal/approval"
)

// What a person may authorise here (5.8).
const (
	priorityAction = "set_ticket_priority"
	policyVersion  = "tickets-priority-policy/1"
)

func priorities() []string { return []string{"low", "medium", "high", "urgent"} }

// refusal is why policy does not let a genuine approval through: an ordinary
// answer, in the contract's words (4.5).
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	alreadyUsed    refusal = "this approval has already been used"
	noChoice       refusal = "this action requires a choice and the approval carries none"
	needsRationale refusal = "overriding the current state requires a rationale"
)

// decidePriority is the policy: any priority may follow any other, with a
// reason wherever the person chose something else than what they were shown.
// It returns the new priority and whether that overrides what was shown.
func decidePriority(current string, c *approval.Claims) (choice string, override bool, err error) {
	if c.Choice == nil {
		return "", false, noChoice
	}
	choice = *c.Choice
	override = c.ExpectedChoice == nil || choice != *c.ExpectedChoice
	switch {
	case !slices.Contains(priorities(), choice):
		return "", false, refusal(fmt.Sprintf(`"%s" is not a choice this action accepts`, choice))
	case choice == current:
		return "", false, refusal(fmt.Sprintf("the ticket is already %s priority", current))
	case override && !written(c.Rationale):
		return "", false, needsRationale
	}
	return choice, override, nil
}

// written: there is a text, and it is not blank.
func written(text *string) bool { return text != nil && strings.TrimSpace(*text) != "" }
