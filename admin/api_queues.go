package admin

import (
	"net/http"
	"slices"
	"strings"
)

// queueJSON is RabbitMQ's shape of a queue, as far as its figures are kept here (spec D.1).
type queueJSON struct {
	Name       string `json:"name"`
	VHost      string `json:"vhost"`
	Type       string `json:"type"`
	Node       string `json:"node"`
	State      string `json:"state"`
	Durable    bool   `json:"durable"`
	Exclusive  bool   `json:"exclusive"`
	AutoDelete bool   `json:"auto_delete"`
	Messages   int    `json:"messages"`
	Ready      int    `json:"messages_ready"`
	Unacked    int    `json:"messages_unacknowledged"`
	Consumers  int    `json:"consumers"`
	Policy     string `json:"policy,omitempty"`
	Operator   string `json:"operator_policy,omitempty"`
}

// queues lists the queues of all virtual hosts, or of the one that the path names.
func (a *api) queues(w http.ResponseWriter, r *request) {
	list := a.src.Queues()
	slices.SortFunc(list, func(x, y QueueInfo) int {
		if by := strings.Compare(x.VHost, y.VHost); by != 0 {
			return by
		}
		return strings.Compare(x.Name, y.Name)
	})
	out := []queueJSON{} // an empty list must encode as [], not null
	for i := range list {
		q := &list[i]
		if len(r.names) > 0 && q.VHost != r.names[0] {
			continue
		}
		out = append(out, queueJSON{
			Name: q.Name, VHost: q.VHost, Type: q.Type, Node: a.node, State: "running",
			Durable: q.Durable, Exclusive: q.Exclusive, AutoDelete: q.AutoDelete,
			Messages: q.Ready + q.Unacked, Ready: q.Ready, Unacked: q.Unacked,
			Consumers: q.Consumers, Policy: q.Policy, Operator: q.Operator,
		})
	}
	writeJSON(w, http.StatusOK, out)
}
