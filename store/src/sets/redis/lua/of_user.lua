-- A reader's connections. KEYS: the online hash. ARGV: reader. Returns id, pod, id, pod…
local told = {}
for _, connection in ipairs(live(redis.call('HGET', KEYS[1], ARGV[1]), now_ms())) do
  told[#told + 1] = connection[1]
  told[#told + 1] = connection[2]
end
return told
