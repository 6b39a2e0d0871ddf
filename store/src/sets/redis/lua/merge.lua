-- Adds entries to a home that exists, and raises its coverage; ends its build, if a token is given.
-- KEYS: the home. ARGV: the token or '', coverage, members at the most, members kept by a cut, then scores and members.
-- Returns 0 when there is no such home, or when its token is another one.
local home, token, coverage, max, kept = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local sentinel = sentinel_of(home)
if not sentinel or (token ~= '' and token ~= sentinel.token) then
  return 0
end
redis.call('ZREM', home, sentinel.member)
raise_coverage(sentinel, coverage)
if token ~= '' then
  sentinel.state = 1
end
put_sentinel(home, sentinel)
add_entries(home, sentinel, 5, max, kept)
return 1
