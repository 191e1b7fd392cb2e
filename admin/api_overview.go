package admin

import "net/http"

type overviewJSON struct {
	ProductName       string           `json:"product_name"`
	ProductVersion    string           `json:"product_version"`
	ManagementVersion string           `json:"management_version"`
	RabbitMQVersion   string           `json:"rabbitmq_version"`
	UptimeMS          int64            `json:"uptime"`
	Node              string           `json:"node"`
	ClusterName       string           `json:"cluster_name"`
	ExchangeTypes     []nameJSON       `json:"exchange_types"`
	ObjectTotals      objectTotalsJSON `json:"object_totals"`
	QueueTotals       queueTotalsJSON  `json:"queue_totals"`
	MessageStats      messageStatsJSON `json:"message_stats"`
	Listeners         []listenerJSON   `json:"listeners"`
}

// messageStatsJSON holds those of RabbitMQ's counts that are kept here.
type messageStatsJSON struct {
	Publish    uint64 `json:"publish"`
	DeliverGet uint64 `json:"deliver_get"`
	Ack        uint64 `json:"ack"`
}

type nameJSON struct {
	Name string `json:"name"`
}

type objectTotalsJSON struct {
	Channels    int `json:"channels"`
	Connections int `json:"connections"`
	Consumers   int `json:"consumers"`
	Exchanges   int `json:"exchanges"`
	Queues      int `json:"queues"`
}

type queueTotalsJSON struct {
	Messages int64 `json:"messages"`
	Ready    int64 `json:"messages_ready"`
	Unacked  int64 `json:"messages_unacknowledged"`
}

type listenerJSON struct {
	Node     string `json:"node"`
	Protocol string `json:"protocol"`
	Address  string `json:"ip_address"`
	Port     uint16 `json:"port"`
}

func (a *api) overview(w http.ResponseWriter, _ *request) {
	o := a.src.Overview()
	out := overviewJSON{
		ProductName: o.Product, ProductVersion: o.Version, ManagementVersion: o.Version,
		RabbitMQVersion: o.CompatVersion, UptimeMS: o.Uptime.Milliseconds(),
		Node: o.Node, ClusterName: o.Node,
		ExchangeTypes: []nameJSON{{"direct"}, {"fanout"}, {"headers"}, {"topic"}},
		ObjectTotals: objectTotalsJSON{
			Channels: o.Channels, Connections: o.Connections, Consumers: o.Consumers,
			Exchanges: o.Exchanges, Queues: o.Queues,
		},
		QueueTotals:  queueTotalsJSON{Messages: o.Ready + o.Unacked, Ready: o.Ready, Unacked: o.Unacked},
		MessageStats: messageStatsJSON{o.Published, o.Delivered, o.Acked},
		Listeners:    []listenerJSON{},
	}
	for _, l := range o.Listeners {
		out.Listeners = append(out.Listeners,
			listenerJSON{o.Node, l.Protocol, hostText(l.Addr), l.Addr.Port()})
	}
	writeJSON(w, http.StatusOK, out)
}

// whoami names the user that logged in. There is one kind of user until accounts land, and it
// may do everything.
func (a *api) whoami(w http.ResponseWriter, r *request) {
	writeJSON(w, http.StatusOK, map[string]any{"name": r.user, "tags": []string{"administrator"}})
}
