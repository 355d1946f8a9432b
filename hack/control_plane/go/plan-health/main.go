// Command plan-health prints how other tools judge objects, by the libraries that these tools use: kstatus (Helm,
// cli-utils), its fork of Flux, wrangler's summary (Rancher's UI, Fleet), Argo CD's Lua, and Flux's CEL.
//
// Input, as JSON: the objects, the Lua script of Argo CD and the healthCheckExprs of Flux. Output: one verdict an object.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	fluxstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/rancher/wrangler/v3/pkg/summary"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type input struct {
	Objects []unstructured.Unstructured      `json:"objects"`
	Lua     string                           `json:"lua"`
	CEL     kustomize.HealthCheckExpressions `json:"cel"`
}

type verdict struct {
	Kstatus  string          `json:"kstatus"`
	Flux     string          `json:"flux"`
	FluxCEL  string          `json:"fluxCEL"`
	Wrangler summary.Summary `json:"wrangler"`
	Argo     string          `json:"argo"`
	Message  string          `json:"message"`
}

func main() {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	verdicts := make([]verdict, 0, len(given.Objects))
	for i := range given.Objects {
		found, err := judge(&given.Objects[i], given)
		if err != nil {
			log.Fatal(err)
		}
		verdicts = append(verdicts, found)
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		log.Fatal(err)
	}
}

func judge(object *unstructured.Unstructured, given input) (verdict, error) {
	plain, err := status.Compute(object)
	if err != nil {
		return verdict{}, fmt.Errorf("kstatus: %w", err)
	}
	flux, err := fluxstatus.Compute(object)
	if err != nil {
		return verdict{}, fmt.Errorf("kstatus of Flux: %w", err)
	}
	evaluator, err := cel.NewStatusEvaluator(&given.CEL)
	if err != nil {
		return verdict{}, fmt.Errorf("healthCheckExprs: %w", err)
	}
	evaluated, err := evaluator.Evaluate(context.Background(), object)
	if err != nil {
		return verdict{}, fmt.Errorf("healthCheckExprs: %w", err)
	}
	argo, message, err := runLua(object, given.Lua)
	if err != nil {
		return verdict{}, fmt.Errorf("health.lua: %w", err)
	}
	return verdict{
		Kstatus:  plain.Status.String(),
		Flux:     flux.Status.String(),
		FluxCEL:  evaluated.Status.String(),
		Wrangler: summary.Summarize(object.DeepCopy()),
		Argo:     argo,
		Message:  message,
	}, nil
}

// runLua runs a health script with the libraries that Argo CD opens for scripts of users, which lack `string`.
func runLua(object *unstructured.Unstructured, script string) (state, message string, err error) {
	vm := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer vm.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := vm.CallByParam(lua.P{Fn: vm.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	vm.SetGlobal("obj", luaValue(vm, object.Object))
	if err := vm.DoString(script); err != nil {
		return "", "", err
	}
	health, isTable := vm.Get(-1).(*lua.LTable)
	if !isTable {
		return "", "", fmt.Errorf("the script returns %s, no table", vm.Get(-1).Type())
	}
	return lua.LVAsString(health.RawGetString("status")), lua.LVAsString(health.RawGetString("message")), nil
}

func luaValue(vm *lua.LState, value any) lua.LValue {
	switch found := value.(type) {
	case bool:
		return lua.LBool(found)
	case float64:
		return lua.LNumber(found)
	case int64:
		return lua.LNumber(found)
	case string:
		return lua.LString(found)
	case []any:
		list := vm.NewTable()
		for _, item := range found {
			list.Append(luaValue(vm, item))
		}
		return list
	case map[string]any:
		table := vm.NewTable()
		for key, item := range found {
			table.RawSetString(key, luaValue(vm, item))
		}
		return table
	}
	return lua.LNil
}
