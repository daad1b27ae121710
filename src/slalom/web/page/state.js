// The state of the page in its address: the request, the removed words and the view.
(function (slalom) {
  "use strict";
  const live = (slalom.live = slalom.live || {});

  const toText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

  live.packed = async (state) => toText(await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw")));

  live.unpacked = async (text) => {
    try {
      return JSON.parse(new TextDecoder().decode(await through(toBytes(text), new DecompressionStream("deflate-raw"))));
    } catch {
      return null; // a link that was cut short
    }
  };

  // The example texts.
  live.EXAMPLES = [
    ["A mixed review", "The first half hour drags, and one of the songs is awful. Then the story finds its feet: the two leads are wonderful together, the camera loves every street of the old town, the last scene is beautiful, and I left the cinema smiling. Not a perfect film, but a great one, and I will see it again."],
    ["One strong word", "A slow start, but a wonderful film."],
    ["A negation", "This is not a good film, and I do not recommend it to anybody."],
    ["Irony", "Oh, great, another sequel. Just what the world was waiting for. I loved every one of the two minutes before I fell asleep."],
    ["A disappointment", "The cast is excellent and the music is lovely, which makes it all the sadder that the script is dull, the jokes are stale and the ending makes no sense at all."],
    ["Hardly an opinion", "The film runs for two hours. It was shot in Prague and tells the story of a clockmaker and his daughter."],
  ];
})((window.slalom = window.slalom || {}));
