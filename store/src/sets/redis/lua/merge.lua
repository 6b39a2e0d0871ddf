-- Adds entries to a home that exists, and raises its coverage: for a follow, for an author who is pushed again, or to end a build.
-- KEYS: the home, the reader's states. ARGV: the build's token or '', coverage, members at the most, members kept by a cut;
-- not after (ms), for how long an old follow is remembered (ms), how many states, and the states as fields and values; then
-- scores and members. Without a token the first state decides: where a newer one is known, nothing is done.
-- Returns 0 when there is no such home, or when its token is another one; false when it is too late.
local home, authors, token, coverage = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local max, kept, states = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])
local now = now_ms()
if now > tonumber(ARGV[5]) then
  return false
end
local sentinel = sentinel_of(home)
if not sentinel or redis.call('HGET', authors, 'token') ~= sentinel.token then
  return 0
end
if token ~= '' and token ~= sentinel.token then
  return 0
end
if token == '' then
  -- The author was unfollowed since, or crossed again: this is history.
  local known = redis.call('HGET', authors, ARGV[8])
  if known and is_below(ARGV[9], known) then
    return 1
  end
  forget_follows(authors, now - tonumber(ARGV[6]))
end
for at = 8, 7 + 2 * states, 2 do
  set_state(authors, ARGV[at], ARGV[at + 1])
end
redis.call('ZREM', home, sentinel.member)
raise_coverage(sentinel, coverage)
if token ~= '' then
  sentinel.state = 1
end
put_sentinel(home, sentinel)
add_entries(home, sentinel, 8 + 2 * states, max, kept)
return 1
