-- Begins to build a home where there is none, where a builder died, or where the states of its authors were lost.
-- KEYS: the home, the reader's states. ARGV: 2 random bytes, how long a build may take (ms). Returns the token, 'theirs' or
-- 'done'.
local home, authors = KEYS[1], KEYS[2]
local now = now_ms()
local sentinel = sentinel_of(home)
if sentinel and redis.call('HGET', authors, 'token') ~= sentinel.token then
  sentinel = nil
end
if sentinel and sentinel.state == 1 then
  return 'done'
end
if sentinel then
  local age = now - struct.unpack('>I6', sentinel.token)
  -- A build from the future began before the clock was set back: nobody knows its age.
  if age >= 0 and age < tonumber(ARGV[2]) then
    return 'theirs'
  end
end
redis.call('DEL', home, authors)
local token = struct.pack('>I6', now) .. ARGV[1]
put_sentinel(home, { state = 0, token = token, coverage = string.rep('\0', 8) })
redis.call('HSET', authors, 'token', token)
return token
