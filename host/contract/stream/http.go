package stream

import (
	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"weir/host/fault"
	"weir/host/run"
)

// Workflow answers POST [PathWorkflow]. caller is the [run.Request] that
// authentication began: principal, request id and its source. Whatever the
// request can be refused for is refused here; from the 200 on everything is
// reported inside the stream.
func (h *Handler) Workflow(c *fiber.Ctx, caller any) error {
	req, ok := caller.(run.Request)
	if !ok {
		return fault.New(fault.Internal, "stream: the caller is a %T", caller)
	}
	if !c.Request().Header.IsHTTP11() { // an older client would take chunk sizes for text
		return refuse(c, fault.New(fault.Invalid, "invalid workflow request: a stream needs HTTP/1.1"))
	}
	turns, err := decodeRequest(c.BodyRaw()) // raw: never inflated
	if err != nil {
		return refuse(c, err)
	}
	req.Turns = turns
	req.Contract, req.RunID = Name, uuid.NewString()
	req.Traceparent = traceparent(c)
	s := h.begin(req, parseFilter(string(c.Request().URI().QueryString())), c.Context().Conn())
	if s == nil {
		c.Set(fiber.HeaderRetryAfter, "1")
		return refuse(c, errCapacity)
	}
	open(c, req, s.body)
	return nil
}

// open sends the head of 2.4 at once, not with the first event.
func open(c *fiber.Ctx, req run.Request, b *body) {
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-cache, no-store")
	c.Set("x-accel-buffering", "no")
	c.Set("x-request-id", req.RequestID)
	c.Set("x-execution-id", req.RunID)
	resp := &c.Context().Response
	resp.ImmediateHeaderFlush = true
	resp.SetBodyStream(b, -1)
}

// traceparent returns the header if there is exactly one.
func traceparent(c *fiber.Ctx) string {
	if values := c.Request().Header.PeekAll("traceparent"); len(values) == 1 {
		return string(values[0])
	}
	return ""
}

// Version answers GET [PathVersion].
func (h *Handler) Version(c *fiber.Ctx, _ any) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(h.opts.Version().encode())
}

func refuse(c *fiber.Ctx, err error) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(status(err)).Send(encodeRefusal(err))
}
