package pdk_test

import (
	"fmt"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk"
)

// limit is kept from configure on, in every later call.
var limit int64 = 80

func init() {
	pdk.Configure(func(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
		d := strictjson.NewDecoder(q.Config)
		err := d.Object(func(name string) (err error) {
			switch name {
			case "max_chars":
				limit, err = d.Int()
			default:
				err = strictjson.Unknown(name)
			}
			return err
		})
		if err != nil {
			return &abi.ConfigureReply{Error: err.Error()}, nil
		}
		return &abi.ConfigureReply{}, nil
	})
}

// A mistake of the operator is part of the reply, so that it reaches them.
func ExampleConfigure() {
	for _, config := range []string{`{"max_chars": 10}`, `{"max_char": 10}`} {
		reply, err := pdk.Invoke(abi.HookConfigure, []byte(`{"now":0,"seed":"0","config":`+config+`}`))
		fmt.Println(string(reply), err, limit)
	}
	// Output:
	// {} <nil> 10
	// {"error":"offset 1: unknown field \"max_char\""} <nil> 10
}
