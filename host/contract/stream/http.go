package stream

import (
	"bytes"
	"context"
	"strings"
	"time"

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
	filter := parseFilter(string(c.Request().URI().QueryString()))
	s := h.begin(req.Principal.UserID, c.Context().Conn(),
		func(client context.Context) *emitter {
			return newEmitter(client, filter, h.opts.Workflow, run.Info{RunID: req.RunID, RequestID: req.RequestID})
		},
		func(ctx context.Context, out *emitter, over func()) { h.runner.Run(ctx, req, out, over) })
	if s == nil {
		return refuse(c, errCapacity)
	}
	open(c, req.RequestID, req.RunID, s.body)
	return nil
}

// Response answers POST [PathResponse]: a person's answer to what a run asks
// (3.2). It does not wait for the run.
func (h *Handler) Response(c *fiber.Ctx, caller any) error {
	req, ok := caller.(run.Request)
	if !ok {
		return fault.New(fault.Internal, "stream: the caller is a %T", caller)
	}
	execution, interaction := strings.Clone(c.Params("execution_id")), strings.Clone(c.Params("interaction_id"))
	body := bytes.Clone(c.BodyRaw())
	if err := checkResponse(execution, interaction, body); err != nil {
		return refuse(c, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	if err := h.runner.Respond(ctx, req.Principal.UserID, execution, interaction, body); err != nil {
		if status(err) == 500 {
			h.opts.Logger.Error("an answer could not be taken", "run", execution, "error", err)
		}
		return refuse(c, err)
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

// responseTimeout is shorter than the ten seconds that the gateway waits (3.6).
const responseTimeout = 8 * time.Second

// Events answers GET [PathEvents]: the events of a run again, for its owner,
// with id lines that Last-Event-ID continues. To everybody else no run exists.
func (h *Handler) Events(c *fiber.Ctx, caller any) error {
	req, ok := caller.(run.Request)
	if !ok {
		return fault.New(fault.Internal, "stream: the caller is a %T", caller)
	}
	execution := strings.Clone(c.Params("execution_id"))
	if uuid.Validate(execution) != nil {
		return refuse(c, fault.New(fault.NotFound, "not found"))
	}
	after, err := lastEventID(c)
	if err != nil {
		return refuse(c, err)
	}
	look, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	show, err := h.runner.Follow(look, req.Principal.UserID, execution, after)
	if err != nil {
		return refuse(c, err)
	}
	filter := parseFilter(string(c.Request().URI().QueryString()))
	s := h.begin(req.Principal.UserID, c.Context().Conn(),
		func(client context.Context) *emitter { return newEmitter(client, filter, h.opts.Workflow, run.Info{}) },
		func(ctx context.Context, out *emitter, over func()) {
			defer over()
			show(ctx, out)
		})
	if s == nil {
		return refuse(c, errCapacity)
	}
	open(c, req.RequestID, execution, s.body)
	return nil
}

// lastEventID is the place from which a client goes on, "" for the start.
func lastEventID(c *fiber.Ctx) (string, error) {
	switch values := c.Request().Header.PeekAll("Last-Event-ID"); len(values) {
	case 0:
		return "", nil
	case 1:
		return string(values[0]), nil
	}
	return "", fault.New(fault.Invalid, "Last-Event-ID: expected at most one")
}

// open sends the head of 2.4 at once, not with the first event.
func open(c *fiber.Ctx, request, execution string, b *body) {
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-cache, no-store")
	c.Set("x-accel-buffering", "no")
	c.Set("x-request-id", request)
	c.Set("x-execution-id", execution)
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
	code := status(err)
	if code == 503 || code == 409 {
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	return c.Status(code).Send(encodeRefusal(err))
}
