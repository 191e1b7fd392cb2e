package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// connectionJSON is RabbitMQ's shape of a connection (spec D.1).
type connectionJSON struct {
	Name             string         `json:"name"`
	UserProvidedName string         `json:"user_provided_name,omitempty"`
	User             string         `json:"user"`
	VHost            string         `json:"vhost"`
	State            string         `json:"state"`
	Type             string         `json:"type"`
	Protocol         string         `json:"protocol"`
	AuthMechanism    string         `json:"auth_mechanism"`
	SSL              bool           `json:"ssl"`
	Host             string         `json:"host"`
	Port             uint16         `json:"port"`
	PeerHost         string         `json:"peer_host"`
	PeerPort         uint16         `json:"peer_port"`
	Channels         int            `json:"channels"`
	ChannelMax       int            `json:"channel_max"`
	FrameMax         int            `json:"frame_max"`
	TimeoutSeconds   int64          `json:"timeout"`
	ConnectedAtMS    int64          `json:"connected_at"`
	BytesReceived    uint64         `json:"recv_oct"`
	BytesSent        uint64         `json:"send_oct"`
	Node             string         `json:"node"`
	ClientProperties map[string]any `json:"client_properties"`
}

func newConnectionJSON(c *ConnInfo, node string) connectionJSON {
	out := connectionJSON{
		Name: c.Name, User: c.User, VHost: c.VHost, State: c.State, Type: "network",
		Protocol: c.Protocol, AuthMechanism: c.AuthMechanism, SSL: c.TLS,
		Host: hostText(c.Local), Port: c.Local.Port(),
		PeerHost: hostText(c.Peer), PeerPort: c.Peer.Port(),
		Channels: c.Channels, ChannelMax: c.ChannelMax, FrameMax: c.FrameMax,
		TimeoutSeconds: int64(c.Heartbeat / time.Second),
		ConnectedAtMS:  c.ConnectedAt.UnixMilli(),
		BytesReceived:  c.BytesReceived, BytesSent: c.BytesSent,
		Node: node, ClientProperties: jsonObject(c.ClientProperties, 0),
	}
	if name, ok := c.ClientProperties["connection_name"].(string); ok {
		out.UserProvidedName = name
	}
	return out
}

func hostText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.Addr().Unmap().String()
}

func (a *api) connections(w http.ResponseWriter, _ *request) {
	list := a.src.Connections()
	slices.SortFunc(list, func(x, y ConnInfo) int { return strings.Compare(x.Name, y.Name) })
	out := make([]connectionJSON, len(list)) // an empty list must encode as [], not null
	for i := range list {
		out[i] = newConnectionJSON(&list[i], a.node)
	}
	writeJSON(w, http.StatusOK, out)
}

func (a *api) connection(w http.ResponseWriter, r *request) {
	list := a.src.Connections()
	for i := range list {
		if list[i].Name == r.names[0] {
			writeJSON(w, http.StatusOK, newConnectionJSON(&list[i], a.node))
			return
		}
	}
	writeNotFound(w)
}

// reasonBytesMax keeps the reason within the short string of connection.close, beside the
// fixed text that the session puts before it.
const reasonBytesMax = 200

func (a *api) connectionDelete(w http.ResponseWriter, r *request) {
	reason := closeReason(r.Header.Get("X-Reason"))
	if !a.src.CloseConnection(r.names[0], reason) {
		writeNotFound(w)
		return
	}
	a.log.Info("connection closed via the API", "connection", r.names[0],
		"user", r.user, "reason", reason)
	w.WriteHeader(http.StatusNoContent)
}

func closeReason(header string) string {
	if header == "" {
		return "Closed via management plugin" // RabbitMQ's words; people search for them
	}
	if len(header) > reasonBytesMax {
		header = header[:reasonBytesMax]
	}
	return strings.ToValidUTF8(header, "")
}
