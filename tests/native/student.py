"""A student's browser, without the browser: logs in, starts a notebook, and runs a cell in it."""

import asyncio
import concurrent.futures
import json
import sys
import time
import uuid

import requests
from tornado import httpclient, websocket

SECONDS = 300


class Student:
    def __init__(self, url, authority, name):
        self.url, self.authority, self.name = url, authority, name
        self.session = requests.Session()
        self.session.verify = authority

    def log_in(self, password):
        """Return whether the password is accepted."""
        self.session.get(f"{self.url}/hub/login")
        form = {"username": self.name, "password": password, "_xsrf": self.session.cookies.get("_xsrf", path="/hub/")}
        answer = self.session.post(f"{self.url}/hub/login?next=/hub/home", data=form)
        return answer.status_code == 200 and answer.url.endswith("/hub/home")

    def choose(self, link, first, again):
        """Choose a password on the page of an invitation; return the text of the page and whether it let us in."""
        page = self.session.get(link)
        token = link.partition("token=")[2]
        form = {"token": token, "password": first, "again": again}
        form["_xsrf"] = self.session.cookies.get("_xsrf", path="/hub/")
        answer = self.session.post(link.partition("?")[0], data=form, allow_redirects=False)
        return {"page": page.status_code, "answer": answer.status_code, "text": answer.text}

    def token(self):
        """Return a token for the API."""
        headers = {"X-XSRFToken": self.session.cookies.get("_xsrf", path="/hub/")}
        answer = self.session.post(f"{self.url}/hub/api/users/{self.name}/tokens", headers=headers, json={})
        answer.raise_for_status()
        return answer.json()["token"]


def ask(url, authority, token, method, path, **how):
    answer = requests.request(
        method, f"{url}{path}", verify=authority, headers={"Authorization": f"token {token}"}, **how
    )
    return answer


def start(url, authority, token, name, profile, seconds):
    """Start a notebook; return None, or what was wrong."""
    answer = ask(url, authority, token, "POST", f"/hub/api/users/{name}/server", json={"profile": profile})
    if answer.status_code not in (201, 202):
        return f"{answer.status_code} {answer.text}"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        server = ask(url, authority, token, "GET", f"/hub/api/users/{name}").json()["servers"].get("")
        if server is None:
            return "the notebook did not start"
        if server["ready"]:
            return None
        time.sleep(0.5)
    return "not ready in time"


def start_all(url, authority, password, names, profile):
    """Start a notebook for each of these users at once; return the answers."""

    def log_in(name):
        student = Student(url, authority, name)
        return student.token() if student.log_in(password) else None

    def one(name, token):
        return ask(
            url, authority, token, "POST", f"/hub/api/users/{name}/server", json={"profile": profile}
        ).status_code

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        tokens = list(pool.map(log_in, names))
        return list(pool.map(one, names, tokens))


def remove(url, authority, token, name, path):
    """Remove a file on the page of JupyterLab; return the answer."""
    return ask(url, authority, token, "DELETE", f"/user/{name}/api/contents/{path}").status_code


async def cell(url, authority, token, name, code):
    """Run a cell; return what it prints."""
    kernel = ask(url, authority, token, "POST", f"/user/{name}/api/kernels", json={}).json()["id"]
    address = f"{url.replace('https', 'wss')}/user/{name}/api/kernels/{kernel}/channels"
    headers = {"Authorization": f"token {token}"}
    patient = {"connect_timeout": SECONDS, "request_timeout": SECONDS}
    request = httpclient.HTTPRequest(address, headers=headers, ca_certs=authority, **patient)
    line = await websocket.websocket_connect(request)
    header = {"msg_id": uuid.uuid4().hex, "username": "", "session": uuid.uuid4().hex, "msg_type": "execute_request"}
    header |= {"version": "5.3", "date": ""}
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await line.write_message(json.dumps(message))
    shown = []
    while True:
        text = await asyncio.wait_for(line.read_message(), SECONDS)
        answer = json.loads(text)
        kind, content = answer["header"]["msg_type"], answer["content"]
        if kind == "stream":
            shown.append(content["text"])
        elif kind == "display_data":
            shown.append(f"<{' '.join(sorted(content['data']))}>")
        elif kind == "error":
            shown.append("\n".join(content["traceback"]))
        elif (
            kind == "status"
            and content["execution_state"] == "idle"
            and answer["parent_header"].get("msg_id") == header["msg_id"]
        ):
            # What a cell prints arrives before this, but possibly after the reply.
            line.close()
            return "".join(shown)


def main():
    what, url, authority, name, *more = sys.argv[1:]
    if what == "login":
        student = Student(url, authority, name)
        good = student.log_in(more[0])
        print(json.dumps(student.token() if good else None))
    elif what == "choose":
        print(json.dumps(Student(url, authority, name).choose(*more)))
    elif what == "start":
        print(json.dumps(start(url, authority, more[0], name, more[1], SECONDS)))
    elif what == "start_all":
        print(json.dumps(start_all(url, authority, more[0], more[2:], more[1])))
    elif what == "remove":
        print(json.dumps(remove(url, authority, more[0], name, more[1])))
    elif what == "poll":
        print(len(ask(url, authority, more[0], "GET", f"/hub/api/users/{name}").json()["servers"]))
    elif what == "stop":
        print(ask(url, authority, more[0], "DELETE", f"/hub/api/users/{name}/server").status_code)
    elif what == "cell":
        print(json.dumps(asyncio.run(cell(url, authority, more[0], name, more[1]))))


main()
