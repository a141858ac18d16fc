"""An agent in nothing but Python's standard library, as somebody else would write it.

    python3 agent.py            one JSON request on stdin, one JSON reply on stdout
    python3 agent.py --http     prints its address and serves POST /execute_task
"""
import http.server
import json
import sys


def act(request):
    text = request["task_description"]
    if "Use get_time" in text:
        return {"action": "call_tool", "tool_name": "get_time", "tool_params": {"zone": "UTC"}, "name": "clockwork"}
    return {"action": "final_answer", "summary": "The clock says " + text + ".", "name": "clockwork"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(act(request), indent=2).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    if "--http" in sys.argv:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("http://127.0.0.1:%d/execute_task" % server.server_address[1], flush=True)
        server.serve_forever()
    print("thinking", file=sys.stderr)
    print(json.dumps(act(json.load(sys.stdin)), indent=2))
