package scenario

import (
	"fmt"
	"slices"
)

type edge struct {
	from, to string
}

// order sorts nodes so that none comes before one that has an edge to it; where
// edges leave a choice, the file's order stands. A condition of an edge does not
// count, as in AgentV.
func order(nodes []Node, edges []edge) ([]Node, error) {
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		if first, ok := at[n.ID]; ok {
			return nil, fmt.Errorf("workflow.nodes[%d].id: expected another than that of nodes[%d], got %q", i, first, n.ID)
		}
		at[n.ID] = i
	}
	next, waits, err := graph(at, edges)
	if err != nil {
		return nil, err
	}
	var ready []int
	for i := range nodes {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	var out []Node
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		out = append(out, nodes[i])
		for _, j := range next[i] {
			if waits[j]--; waits[j] == 0 {
				at, _ := slices.BinarySearch(ready, j)
				ready = slices.Insert(ready, at, j)
			}
		}
	}
	if len(out) < len(nodes) {
		return nil, fmt.Errorf("workflow.edges: expected no cycle")
	}
	return out, nil
}

func graph(at map[string]int, edges []edge) (next map[int][]int, waits map[int]int, err error) {
	next, waits = make(map[int][]int), make(map[int]int)
	for i, e := range edges {
		from, ok := at[e.from]
		if !ok {
			return nil, nil, fmt.Errorf("workflow.edges[%d].from: expected the id of a node, got %q", i, e.from)
		}
		to, ok := at[e.to]
		if !ok {
			return nil, nil, fmt.Errorf("workflow.edges[%d].to: expected the id of a node, got %q", i, e.to)
		}
		if !slices.Contains(next[from], to) {
			next[from] = append(next[from], to)
			waits[to]++
		}
	}
	return next, waits, nil
}
