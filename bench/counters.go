package bench

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// entersCounter counts the server's kernel entries of the message path.
const entersCounter = "ringmq_loop_enters_total"

// infoMetric carries version, I/O backend and sync mode as labels.
const infoMetric = "ringmq_info"

// metrics is a metrics page, its samples summed over labels, plus the labels
// of infoMetric.
type metrics struct {
	values map[string]float64
	info   map[string]string
}

// readMetrics fetches a page in the Prometheus text format.
func readMetrics(url string) (metrics, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return metrics{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return metrics{}, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return parseMetrics(io.LimitReader(resp.Body, 64<<20))
}

func parseMetrics(r io.Reader) (metrics, error) {
	m := metrics{values: map[string]float64{}, info: map[string]string{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, labels := line, ""
		rest := ""
		if open := strings.IndexByte(line, '{'); open >= 0 {
			shut := strings.LastIndexByte(line, '}')
			if shut < open {
				continue
			}
			name, labels, rest = line[:open], line[open+1:shut], line[shut+1:]
		} else {
			name, rest, _ = strings.Cut(line, " ")
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			continue
		}
		m.values[name] += value
		if name == infoMetric {
			parseLabels(labels, m.info)
		}
	}
	return m, lines.Err()
}

// parseLabels reads a="b",c="d"; escapes other than \" are left as they are.
func parseLabels(labels string, into map[string]string) {
	for labels != "" {
		key, rest, ok := strings.Cut(labels, `="`)
		if !ok {
			return
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return
		}
		into[strings.Trim(key, ", ")] = rest[:end]
		labels = rest[end+1:]
	}
}
