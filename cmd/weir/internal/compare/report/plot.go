package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/cmd/weir/internal/compare"
)

// Plots are numbers for the template, which draws them: no markup is made here.

// forestPlot is the difference of every suite with its interval.
type forestPlot struct {
	Width, Height, Zero float64
	Base                float64 // where the scale begins
	Left, Right         float64
	Rows                []forestRow
	Ticks               []tick
}

type forestRow struct {
	Label              string
	Y, Low, Mean, High float64
	Decided            bool
	Text               string
}

type tick struct {
	At    float64
	Label string
}

const (
	plotWidth = 640
	labels    = 110 // space for the names on the left
	margin    = 34
)

func forest(r *compare.Result) forestPlot {
	p := forestPlot{Width: plotWidth, Left: labels, Right: plotWidth - margin}
	scale := func(v float64) float64 { return p.Left + (v+1)/2*(p.Right-p.Left) }
	p.Zero = scale(0)
	for _, v := range []float64{-1, -0.5, 0, 0.5, 1} {
		p.Ticks = append(p.Ticks, tick{scale(v), strings.TrimSuffix(signed(v), ".0")})
	}
	for i, s := range r.Suites {
		if s.Difference.Pairs == 0 {
			continue
		}
		p.Rows = append(p.Rows, forestRow{
			Label: string(s.Suite), Y: 28 + 34*float64(i), Low: scale(s.Difference.Low), Mean: scale(s.Difference.Mean), High: scale(s.Difference.High),
			Decided: s.Difference.Decided, Text: interval(s.Difference),
		})
	}
	p.Base = 28 + 34*float64(len(r.Suites))
	p.Height = p.Base + 24
	return p
}

// curvePlot is how many answers had come after a time, for both agents.
type curvePlot struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	A, B                     string // points of a polyline
	Ticks                    []tick
	Levels                   []tick
}

func curves(r *compare.Result, first bool) curvePlot {
	return curvesOf(measured(r, 0, first), measured(r, 1, first))
}

func curvesOf(a, b []float64) curvePlot {
	p := curvePlot{Width: plotWidth, Height: 240, Left: 44, Right: plotWidth - margin, Top: 12, Bottom: 206}
	low, high := bounds(append(slices.Clone(a), b...))
	x := func(v float64) float64 {
		return p.Left + (math.Log(v)-math.Log(low))/(math.Log(high)-math.Log(low))*(p.Right-p.Left)
	}
	y := func(share float64) float64 { return p.Bottom - share*(p.Bottom-p.Top) }
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		p.Levels = append(p.Levels, tick{y(share), strconv.Itoa(int(math.Round(100*share))) + " %"})
	}
	for decade := math.Floor(math.Log10(low)); decade <= math.Ceil(math.Log10(high)); decade++ {
		for _, factor := range []float64{1, 2, 5} {
			if v := factor * math.Pow(10, decade); v >= low*0.999 && v <= high*1.001 {
				p.Ticks = append(p.Ticks, tick{x(v), axis(v)})
			}
		}
	}
	p.A, p.B = stairs(a, x, y), stairs(b, x, y)
	return p
}

func axis(v float64) string {
	if v < 0.9995 {
		return strconv.FormatFloat(1000*v, 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " s"
}

// bounds are the ends of a logarithmic axis, on round numbers around the values.
func bounds(values []float64) (low, high float64) {
	if len(values) == 0 {
		return 0.001, 1
	}
	low, high = math.Max(slices.Min(values), 1e-6), math.Max(slices.Max(values), 1e-6)
	down := func(v float64) float64 {
		decade := math.Pow(10, math.Floor(math.Log10(v)))
		for _, f := range []float64{5, 2, 1} {
			if f*decade <= v {
				return f * decade
			}
		}
		return decade
	}
	low, high = down(low), 1/down(1/high)
	if high <= low {
		high = low * 10
	}
	return low, high
}

// maxRanks is how many steps a curve has at most, one for each pixel or so.
const maxRanks = 500

// stairs are the points of a curve of shares over values. Of more than maxRanks
// values it has evenly spread ranks, and the first and the last value.
func stairs(values []float64, x, y func(float64) float64) string {
	slices.Sort(values)
	var points strings.Builder
	n, steps := len(values), min(len(values), maxRanks)
	point := func(v, share float64) {
		points.WriteString(number(x(v)) + "," + number(y(share)) + " ")
	}
	if n > steps {
		point(values[0], 0)
	}
	before := 0.0
	for step := range steps {
		rank := (step + 1) * n / steps
		v, after := values[rank-1], float64(rank)/float64(n)
		point(v, before)
		point(v, after)
		before = after
	}
	return points.String()
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func measured(r *compare.Result, side int, first bool) []float64 {
	var out []float64
	for _, c := range r.Cases {
		trials := c.A
		if side == 1 {
			trials = c.B
		}
		for _, t := range trials {
			v := t.Latency
			if first {
				v = t.First
			}
			if t.Broken == "" && v > 0 {
				out = append(out, v)
			}
		}
	}
	return out
}
