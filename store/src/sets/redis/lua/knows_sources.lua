-- Whether a person has come in from sources. KEYS: the person's sources. ARGV: the sources. Returns 1 or 0 for each.
local now = now_ms()
local answers = {}
for at, source in ipairs(ARGV) do
  local until_ms = redis.call('ZSCORE', KEYS[1], source)
  answers[at] = until_ms and tonumber(until_ms) > now and 1 or 0
end
return answers
