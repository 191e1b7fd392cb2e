package admin

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// metrics answers in the Prometheus text format, version 0.0.4. It needs no login, as
// RabbitMQ's and everyone else's: it names no user, queue or message.
func (a *api) metrics(w http.ResponseWriter, _ *request) {
	body := appendMetrics(nil, a.src.Counters())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(body) //nolint:errcheck // the scraper has gone
}

// appendMetrics appends the samples to dst. Samples of one name are kept together under one
// HELP and TYPE, which the format demands, in the order in which the source gave them.
func appendMetrics(dst []byte, samples []Counter) []byte {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(x, y Counter) int { return strings.Compare(x.Name, y.Name) })
	previous := ""
	for i := range samples {
		s := &samples[i]
		if s.Name != previous {
			dst = appendMetricHead(dst, s)
			previous = s.Name
		}
		dst = append(dst, s.Name...)
		dst = appendLabels(dst, s.Labels)
		dst = append(dst, ' ')
		dst = appendMetricValue(dst, s.Value)
		dst = append(dst, '\n')
	}
	return dst
}

func appendMetricHead(dst []byte, s *Counter) []byte {
	dst = append(dst, "# HELP "...)
	dst = append(dst, s.Name...)
	dst = append(dst, ' ')
	dst = appendEscaped(dst, s.Help, false)
	dst = append(dst, "\n# TYPE "...)
	dst = append(dst, s.Name...)
	dst = append(dst, ' ')
	kind := s.Kind
	if kind != "counter" && kind != "gauge" {
		kind = "untyped" // a scraper refuses the whole page for a type that it does not know
	}
	dst = append(dst, kind...)
	return append(dst, '\n')
}

func appendLabels(dst []byte, labels []Label) []byte {
	for i, l := range labels {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, l.Name...)
		dst = append(dst, '=', '"')
		dst = appendEscaped(dst, l.Value, true)
		dst = append(dst, '"')
	}
	if len(labels) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// appendEscaped escapes what would end a line or, in a label value, the quotes.
func appendEscaped(dst []byte, s string, quotes bool) []byte {
	for _, c := range []byte(s) {
		switch {
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\\' || c == '"' && quotes:
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendMetricValue prints numbers of the usual sizes without an exponent: people read this page
// too.
func appendMetricValue(dst []byte, v float64) []byte {
	if v == float64(int64(v)) && v < 1<<53 && v > -(1<<53) {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	if size := math.Abs(v); size >= 1e-6 && size < 1<<53 {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}
