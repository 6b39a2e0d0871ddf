-- Begins to build a home where there is none, or where a builder died.
-- KEYS: the home. ARGV: 2 random bytes, how long a build may take (ms). Returns the token, 'theirs' or 'done'.
local now = now_ms()
local sentinel = sentinel_of(KEYS[1])
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
redis.call('DEL', KEYS[1])
local token = struct.pack('>I6', now) .. ARGV[1]
put_sentinel(KEYS[1], { state = 0, token = token, coverage = string.rep('\0', 8) })
return token
