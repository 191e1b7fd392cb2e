package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Metrics are the samples of one read of GET /metrics: name to the sum over its label sets.
type Metrics map[string]float64

// Metrics reads the broker's counters.
func (b *Broker) Metrics() (Metrics, error) {
	status, body, err := b.Get("/metrics")
	if err != nil {
		return nil, err
	}
	if status != 200 {
		return nil, fmt.Errorf("GET /metrics: status %d: %s", status, body)
	}
	return ParseMetrics(body)
}

// ParseMetrics reads the Prometheus text format: comments are skipped, label sets of one name are added up.
func ParseMetrics(text []byte) (Metrics, error) {
	out := Metrics{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest := line, ""
		if open := strings.IndexByte(line, '{'); open >= 0 {
			shut := strings.LastIndexByte(line, '}')
			if shut < open {
				return nil, fmt.Errorf("metrics line without a closing brace: %q", line)
			}
			name, rest = line[:open], line[shut+1:]
		} else if space := strings.IndexAny(line, " \t"); space >= 0 {
			name, rest = line[:space], line[space:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return nil, fmt.Errorf("metrics line without a value: %q", line)
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics line %q: %w", line, err)
		}
		out[name] += v
	}
	return out, lines.Err()
}
