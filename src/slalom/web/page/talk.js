// Talking to the server: JSON, and the progress of an explanation as events.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});

  const problem = async (answer) => {
    let told = {};
    try {
      told = await answer.json();
    } catch {
      // not JSON: only the status is known
    }
    return Object.assign(new Error(told.error || `the server answered ${answer.status}`), { kind: told.kind });
  };

  live.fetched = async (path) => {
    const answer = await fetch(path);
    if (!answer.ok) throw await problem(answer);
    return answer.json();
  };

  const post = (path, body, more = {}) =>
    fetch(path, { method: "POST", headers: { "Content-Type": "application/json", ...more.headers }, body: JSON.stringify(body), signal: more.signal });

  live.asked = async (path, body, signal) => {
    const answer = await post(path, body, { signal });
    if (!answer.ok) throw await problem(answer);
    return answer.json();
  };

  // Calls tell(kind, data) for every event until the explanation is done; aborting the signal
  // closes the connection, and the server stops.
  live.explained = (body, signal, tell) => live.streamed("/api/explain", body, signal, tell);
  live.streamed = async (path, body, signal, tell) => {
    const answer = await post(path, body, { signal, headers: { Accept: "text/event-stream" } });
    if (!answer.ok) throw await problem(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let done = null;
    for (;;) {
      const { value, done: ended } = await reader.read();
      if (ended) break;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, kind, data] = event.match(/^event: (\w+)\ndata: ([^]*)$/);
        const told = JSON.parse(data);
        if (kind === "failed") throw Object.assign(new Error(told.error), { kind: told.kind });
        if (kind === "done") done = told;
        tell(kind, told);
      }
    }
    if (!done) throw new Error("the server closed the connection before it was done");
    return done;
  };
})((window.slalom = window.slalom || {}));
