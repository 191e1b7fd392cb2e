package admin

import "net/http"

// Status is the broker at a glance: what "ringmq ctl status" shows. Sizes are in bytes, times in
// seconds. It is encoded as it stands; names never change their meaning.
type Status struct {
	Product string  `json:"product"`
	Version string  `json:"version"`
	State   string  `json:"state"` // "recovering", "running", "draining"
	Unready string  `json:"unready,omitempty"`
	PID     int     `json:"pid"`
	Uptime  float64 `json:"uptime_seconds"`
	Data    string  `json:"data"`

	AMQP  []string `json:"amqp"` // addresses
	HTTP  string   `json:"http"` // address, or "off"
	IO    string   `json:"io"`
	Loops int      `json:"loops"`

	Sync      string `json:"sync"`
	SyncLoses string `json:"sync_loses"` // what a power cut loses of what was confirmed

	Alarms        []string `json:"alarms"` // "memory", "disk", "sync"; empty when all is well
	MemoryUsed    int64    `json:"memory_used_bytes"`
	MemoryLimit   int64    `json:"memory_limit_bytes"`
	DiskFree      int64    `json:"disk_free_bytes"`
	DiskFreeLimit int64    `json:"disk_free_limit_bytes"` // 0 = off

	Connections int   `json:"connections"`
	Channels    int   `json:"channels"`
	Consumers   int   `json:"consumers"`
	Queues      int   `json:"queues"`
	Ready       int64 `json:"messages_ready"`
	Unacked     int64 `json:"messages_unacknowledged"`

	Logs []LogStatus `json:"logs"`
}

// LogStatus is one loop's message log in a Status.
type LogStatus struct {
	Loop       int     `json:"loop"`
	Size       int64   `json:"size_bytes"` // on disk, prepared files included
	Live       int64   `json:"live_bytes"` // of records that are still needed
	Segments   int     `json:"segments"`
	Syncs      uint64  `json:"syncs"`
	SyncMean   float64 `json:"sync_mean_seconds"`
	SyncMax    float64 `json:"sync_max_seconds"`
	InFlight   float64 `json:"sync_running_seconds"` // how long the write under way takes so far
	Backlog    int64   `json:"backlog_bytes"`        // waiting to be written
	PagedOut   uint64  `json:"paged_out_messages"`   // whose bodies are on disk only
	Refused    uint64  `json:"refused_messages"`     // for want of room on the disk
	Lost       uint64  `json:"lost_bodies"`          // that could not be read back
	SpaceError string  `json:"space_error,omitempty"`
}

func (a *api) status(w http.ResponseWriter, _ *request) {
	s := a.src.Status()
	if s.Alarms == nil {
		s.Alarms = []string{} // must encode as [], not null
	}
	if s.Logs == nil {
		s.Logs = []LogStatus{}
	}
	writeJSON(w, http.StatusOK, s)
}
