package turn

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"weir/host/fault"
	"weir/host/run"
)

// Execute answers POST [PathTask]. The caller is the [run.Request] that
// authentication began, or a [Caller] of a listener without a key. The answer is
// JSON, or one event of it where a client asks for text/event-stream.
func (h *Handler) Execute(c *fiber.Ctx, caller any) error {
	var who Caller
	switch v := caller.(type) {
	case run.Request:
		who.Request = v
	case Caller:
		who = v
		who.Connection = strconv.FormatUint(c.Context().ConnID(), 10)
	default:
		return fault.New(fault.Internal, "turn: the caller is a %T", caller)
	}
	if values := c.Request().Header.PeekAll("traceparent"); len(values) == 1 {
		who.Traceparent = string(values[0])
	}
	events := strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream")
	r, err := h.answer(context.Background(), who, bytes.Clone(c.BodyRaw()))
	if err != nil {
		return h.refuse(c, err)
	}
	body := h.encode(r, 0)
	if !events {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(body)
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Send(append(append([]byte("data: "), body...), "\n\ndata: [DONE]\n\n"...))
}

func (h *Handler) refuse(c *fiber.Ctx, err error) error {
	code := status(err)
	if code == 500 {
		h.opts.Logger.Error("a request could not be answered", "kind", fault.Of(err).String(), "error", err)
	}
	if code == 503 {
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Status(code).Send(encodeRefusal(err))
}
