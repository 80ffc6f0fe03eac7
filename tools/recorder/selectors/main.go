// Selectors answers expressions with the device-selector compiler of the k8s.io/dynamic-resource-allocation module that
// it is built with: one JSON object a line on standard input, one answer a line on standard output. Its first line of
// output names the functions that expressions of this release may call.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

// evaluationTimeout ends what the limit of costs does not.
const evaluationTimeout = 20 * time.Second

// question is an expression and the devices to evaluate it on. Features are names of fields of cel.Features; of a name
// that this release does not have, nothing can be switched on.
type question struct {
	Expression string   `json:"expression"`
	Features   []string `json:"celFeatures"`
	Stored     bool     `json:"stored"`
	Repeats    int      `json:"repeats"`
	Devices    []device `json:"devices"`
}

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

type answer struct {
	CompileError string      `json:"compileError,omitempty"`
	OutputType   string      `json:"outputType,omitempty"`
	MaxCost      uint64      `json:"maxCost"`
	Outcomes     [][]outcome `json:"outcomes,omitempty"`
	Panic        string      `json:"panic,omitempty"`
	TimedOut     bool        `json:"timedOut,omitempty"`
}

// outcome is what one device gave; of a device that was asked several times, each different one.
type outcome struct {
	Match bool   `json:"match"`
	Error string `json:"error,omitempty"`
	Cost  uint64 `json:"cost"`
}

type function struct {
	Name      string     `json:"name"`
	Member    bool       `json:"member"`
	Arguments []typeName `json:"arguments"`
	Result    typeName   `json:"result"`
}

// typeName is the name of a type, then its parameters; of a type parameter, "" and its name.
type typeName []any

func nameOf(of *types.Type) typeName {
	if of.Kind() == types.TypeParamKind {
		return typeName{"", of.TypeName()}
	}
	out := typeName{of.TypeName()}
	for _, parameter := range of.Parameters() {
		out = append(out, nameOf(parameter))
	}
	return out
}

func compile(asked question) cel.CompilationResult {
	var features cel.Features
	value := reflect.ValueOf(&features).Elem()
	for _, name := range asked.Features {
		if field := value.FieldByName(name); field.IsValid() {
			field.SetBool(true)
		}
	}
	kind := environment.NewExpressions
	if asked.Stored {
		kind = environment.StoredExpressions
	}
	return cel.GetCompiler(features).CompileCELExpression(asked.Expression, cel.Options{EnvType: &kind})
}

func functions() []function {
	var env *celgo.Env = compile(question{Expression: "true", Stored: true}).Environment
	var out []function
	for name, declared := range env.Functions() {
		for _, overload := range declared.OverloadDecls() {
			one := function{Name: name, Member: overload.IsMemberFunction(), Result: nameOf(overload.ResultType())}
			for _, argument := range overload.ArgTypes() {
				one.Arguments = append(one.Arguments, nameOf(argument))
			}
			out = append(out, one)
		}
	}
	sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })
	return out
}

func reply(asked question) (out answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			out = answer{Panic: fmt.Sprint(panicked)}
		}
	}()
	compiled := compile(asked)
	if compiled.Error != nil {
		out.CompileError = compiled.Error.Detail
		return out
	}
	out.OutputType = compiled.OutputType.String()
	out.MaxCost = compiled.MaxCost
	for _, one := range asked.Devices {
		var seen []outcome
		known := map[outcome]bool{}
		for range asked.Repeats {
			found, inTime := evaluate(compiled, one)
			if !inTime {
				out.TimedOut = true
				return out
			}
			if !known[found] {
				known[found] = true
				seen = append(seen, found)
			}
		}
		out.Outcomes = append(out.Outcomes, seen)
	}
	return out
}

func evaluate(compiled cel.CompilationResult, on device) (outcome, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), evaluationTimeout)
	defer cancel()
	matches, details, err := compiled.DeviceMatches(ctx, cel.Device{
		Driver:                   on.Driver,
		AllowMultipleAllocations: on.AllowMultipleAllocations,
		Attributes:               on.Attributes,
		Capacity:                 on.Capacity,
	})
	out := outcome{Match: matches}
	if err != nil {
		out = outcome{Error: err.Error()}
	}
	if details != nil && details.ActualCost() != nil {
		out.Cost = *details.ActualCost()
	}
	return out, ctx.Err() == nil
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	encoder.Encode(functions())
	writer.Flush()
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var asked question
			if err := json.Unmarshal(line, &asked); err != nil {
				fmt.Fprintln(os.Stderr, "a line is no question:", err)
				os.Exit(2)
			}
			encoder.Encode(reply(asked))
			writer.Flush()
		}
		if err != nil {
			return
		}
	}
}
