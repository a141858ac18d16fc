package approval

import "weir/abi/strictjson"

// Request is the body of POST /approvals/execute (4.5).
type Request struct {
	Token string
	// RequestID is the authenticated request that the caller says it acts for;
	// a token is bound to one.
	RequestID string
}

// DecodeRequest wants exactly the two members, once each. What is anything else
// is refused as a token of the wrong shape is.
func DecodeRequest(body []byte) (Request, error) {
	var req Request
	seen := 0
	d := strictjson.NewDecoder(body)
	err := d.Object(func(name string) (err error) {
		seen++
		switch name {
		case "approval_token":
			req.Token, err = d.String()
		case "request_id":
			req.RequestID, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	if err != nil || d.End() != nil || seen != 2 {
		return Request{}, ErrPayload
	}
	return req, nil
}
